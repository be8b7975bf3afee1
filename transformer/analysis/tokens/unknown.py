"""What tokenizers make of characters that were not in the text they learned from: <unk>, or bytes."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from transformer.text.pairs import word_spans
from transformer.text.token_ids import UNK, valid_text
from transformer.text.tokenizer import Tokenizer, TokenizerKind


@dataclass(frozen=True)
class Fate:
    """A character that some tokenizer has no entry for, and what each reads in its place."""

    character: str
    name: str
    """Its name in Unicode."""
    encoded: bytes
    """Its bytes in UTF-8."""
    read: Mapping[TokenizerKind, tuple[str, ...]]
    """The tokens of the character; of words those of the whole word that it stands in."""

    @property
    def code_point(self) -> str:
        """Returns its number in Unicode, as in "U+1F994"."""
        return f"U+{ord(self.character):04X}"


def fates(text: str, tokenizers: Mapping[TokenizerKind, Tokenizer]) -> tuple[Fate, ...]:
    """Returns the fate of each character of the text that one of the tokenizers does not know, each once, in order."""
    text, found = valid_text(text), {}
    for place, character in enumerate(text):
        if character in found or character.isspace():
            continue
        read = {kind: _read(tokenizer, text, place) for kind, tokenizer in tokenizers.items()}
        if any(_is_strange(tokenizer, text, place) for kind, tokenizer in tokenizers.items() if kind != "words"):
            name = unicodedata.name(character, "without a name").lower()
            found[character] = Fate(character, name, character.encode(), read)
    return tuple(found.values())


def cut_short(tokenizer: Tokenizer, character: str) -> tuple[str, ...]:
    """Returns what the first tokens of a character read back as: one, two, and so on to all of them."""
    ids = tokenizer.encode(character)
    return tuple(tokenizer.decode(ids[:n]) for n in range(1, len(ids) + 1) if tokenizer.piece(ids[n - 1]) != "▁")


def _is_strange(tokenizer: Tokenizer, text: str, place: int) -> bool:
    return bool(tokenizer.sentence(text[place]).unseen) or UNK in tokenizer.encode(text[place])


def _read(tokenizer: Tokenizer, text: str, place: int) -> tuple[str, ...]:
    start, end = place, place + 1
    if tokenizer.kind == "words":
        start, end = next((span for span in word_spans(text) if span[0] <= place < span[1]), (start, end))
    pieces = [tokenizer.piece(token) for token in tokenizer.encode(text[start:end])]
    return tuple(pieces[1:] if len(pieces) > 1 and pieces[0] == "▁" else pieces)
