"""Patterns of attention as true and false for every cell of a batch: the token before, the end mark, the word that the
gold alignment names. How much weight lies there is counted in survey.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from unicodedata import category

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.data.batches import Batch
from transformer.data.tasks import AlignmentUnit
from transformer.model.kinds import AttentionKind
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer

Pattern = Literal[
    "previous",
    "next",
    "diagonal",
    "anti_diagonal",
    "same_token",
    "first",
    "end",
    "punctuation",
    "alignment",
    "referent",
]
Cells = Bool[Tensor, "batch query key"]
TIE = 1e-3
"""Weights of a row that differ by less than this share of the larger one count as equal: of a head that looks at all
tokens alike, rounding would else choose one."""


@dataclass(frozen=True)
class Gold:
    """The words of a batch of pairs, and what the corpus says of them; a row of words is False past a pair's last."""

    source: Float[Tensor, "batch source word"]
    """1 where a source token belongs to a source word."""
    written: Float[Tensor, "batch target target_word"]
    """1 where the token that a decoder position writes belongs to a target word."""
    read: Float[Tensor, "batch target target_word"]
    """The same of the token that the position reads: the one written just before."""
    links: Bool[Tensor, "batch target_word word"]
    """The gold alignment; all False in a pair that has none."""
    pronoun: Bool[Tensor, "batch word"]
    """The source word whose referent is known."""
    noun: Bool[Tensor, "batch word"]
    """The word that it refers to."""


def gold_of(pairs: Sequence[Pair], batch: Batch, tokenizer: Tokenizer, unit: AlignmentUnit) -> Gold:
    """Returns the words of a batch of pairs. Where tokens are no units of the alignment, its links are left out."""
    source = [_units(tokenizer, pair.source, unit) for pair in pairs]
    target = [_target_units(tokenizer, pair.target, unit) for pair in pairs]
    n_source, n_target = (1 + max(0, *(max(found, default=0) for found in side)) for side in (source, target))
    size, n_source_tokens, n_target_tokens = len(pairs), batch.source.size(1), batch.target_in.size(1)
    words = _places_of(source)
    written = _places_of(target)
    linked = [
        (row, b, a)
        for row, pair in enumerate(pairs)
        if source[row] and target[row]
        for a, b in pair.alignment
        if a < n_source and b < n_target
    ]
    referents = [(row, pair.referent) for row, pair in enumerate(pairs) if pair.referent is not None and source[row]]
    return Gold(
        source=_marked(words, size, n_source_tokens, n_source).float(),
        written=_marked(written, size, n_target_tokens, n_target).float(),
        read=_marked([(row, token + 1, word) for row, token, word in written], size, n_target_tokens, n_target).float(),
        links=_marked(linked, size, n_target, n_source),
        pronoun=_marked([(row, pronoun) for row, (pronoun, _) in referents], size, n_source),
        noun=_marked([(row, noun) for row, (_, noun) in referents], size, n_source),
    )


def _places_of(words: Sequence[Sequence[int]]) -> list[tuple[int, int, int]]:
    """Returns (row, token, word) of every token that belongs to a word."""
    return [(row, token, word) for row, found in enumerate(words) for token, word in enumerate(found) if word >= 0]


def _marked(places: Sequence[tuple[int, ...]], *shape: int) -> Bool[Tensor, "..."]:
    """Returns True at these places."""
    found = torch.zeros(shape, dtype=torch.bool)
    if places:
        found[tuple(torch.tensor(places).T)] = True
    return found


def patterns_of(
    kind: AttentionKind, batch: Batch, gold: Gold, punctuation: Bool[Tensor, " vocab"], allowed: Cells
) -> dict[Pattern, Cells]:
    """Returns the allowed cells of each pattern that this kind of attention has."""
    match kind:
        case AttentionKind.ENCODER_SELF:
            found = _encoder_self(batch, gold, punctuation)
        case AttentionKind.DECODER_SELF:
            found = _decoder_self(batch, gold, punctuation)
        case AttentionKind.CROSS:
            found = _cross(batch, gold, punctuation)
    return {name: cells.expand_as(allowed) & allowed for name, cells in found.items()}


def punctuation_of(tokenizer: Tokenizer) -> Bool[Tensor, " vocab"]:
    """Returns True for entries of a vocabulary that are nothing but punctuation (Unicode's categories P)."""
    return torch.tensor([_is_punctuation(entry.strip("▁")) for entry in tokenizer.vocabulary()])


def _encoder_self(batch: Batch, gold: Gold, punctuation: Bool[Tensor, " vocab"]) -> dict[Pattern, Cells]:
    query, key = _places(batch.source.size(1), batch.source.size(1))
    words = batch.source_mask.sum(dim=1)[:, None, None] - 1  # the end mark is no word
    return {
        "previous": (key == query - 1)[None],
        "next": (key == query + 1)[None],
        "diagonal": (key == query)[None],
        "anti_diagonal": (query < words) & (key == words - 1 - query),
        "same_token": (batch.source[:, :, None] == batch.source[:, None, :]) & (key != query),
        "first": (key == 0)[None],
        "end": key == words,
        "punctuation": punctuation[batch.source][:, None, :],
        "referent": _pairs_of(gold.source, gold.pronoun, gold.source, gold.noun),
    }


def _decoder_self(batch: Batch, gold: Gold, punctuation: Bool[Tensor, " vocab"]) -> dict[Pattern, Cells]:
    query, key = _places(batch.target_in.size(1), batch.target_in.size(1))
    pronoun, noun = ((gold.links & word[:, None, :]).any(dim=-1) for word in (gold.pronoun, gold.noun))
    return {
        "previous": (key == query - 1)[None],
        "diagonal": (key == query)[None],
        "same_token": (batch.target_in[:, :, None] == batch.target_in[:, None, :]) & (key != query),
        "first": (key == 0)[None],
        "punctuation": punctuation[batch.target_in][:, None, :],
        "referent": _pairs_of(gold.written, pronoun, gold.read, noun),
    }


def _cross(batch: Batch, gold: Gold, punctuation: Bool[Tensor, " vocab"]) -> dict[Pattern, Cells]:
    query, key = _places(batch.target_in.size(1), batch.source.size(1))
    words = batch.source_mask.sum(dim=1)[:, None, None] - 1
    written = batch.target_mask.sum(dim=1)[:, None, None] - 1
    # The key at the same share of its sentence: the very same place where both are equally long.
    place = ((2 * query + 1) * words).div(2 * written.clamp(min=1), rounding_mode="floor")
    is_word = query < written
    linked = gold.written @ gold.links.float() @ gold.source.transpose(1, 2) > 0
    pronoun = (gold.links & gold.pronoun[:, None, :]).any(dim=-1)
    return {
        "diagonal": is_word & (key == place),
        "anti_diagonal": is_word & (key == words - 1 - place),
        "same_token": (batch.target_out[:, :, None] == batch.source[:, None, :]) & is_word,
        "first": (key == 0)[None],
        "end": key == words,
        "punctuation": punctuation[batch.source][:, None, :],
        "alignment": linked,
        "referent": _pairs_of(gold.written, pronoun, gold.source, gold.noun),
    }


def _places(n_query: int, n_key: int) -> tuple[Int[Tensor, "query 1"], Int[Tensor, "1 key"]]:
    return torch.arange(n_query)[:, None], torch.arange(n_key)[None, :]


def _pairs_of(
    query_words: Float[Tensor, "batch query query_word"],
    asking: Bool[Tensor, "batch query_word"],
    key_words: Float[Tensor, "batch key key_word"],
    asked: Bool[Tensor, "batch key_word"],
) -> Cells:
    """Returns True where the row has a token of an asking word and the column a token of an asked one."""
    rows = (query_words * asking[:, None, :]).sum(dim=-1) > 0
    columns = (key_words * asked[:, None, :]).sum(dim=-1) > 0
    return rows[:, :, None] & columns[:, None, :]


def _units(tokenizer: Tokenizer, text: str, unit: AlignmentUnit) -> list[int]:
    """Returns the unit of each source token; nothing where tokens are not made of whole units."""
    return [*tokenizer.sentence(text).words[:-1]] if unit == "word" else _characters(text, len(tokenizer.encode(text)))


def _target_units(tokenizer: Tokenizer, text: str, unit: AlignmentUnit) -> list[int]:
    ids = tokenizer.encode_target(text)
    return tokenizer.word_of_output(ids) if unit == "word" else _characters(text, len(ids))


def _characters(text: str, n_tokens: int) -> list[int]:
    return list(range(n_tokens)) if n_tokens == len(text) else []


def _is_punctuation(entry: str) -> bool:
    return bool(entry) and all(category(character).startswith("P") for character in entry)
