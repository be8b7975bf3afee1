"""A tokenizer of whole words or symbols: its list of entries, learned by counting and kept as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from transformer.text.pairs import join_words, word_spans, words
from transformer.text.sentence import Sentence
from transformer.text.token_ids import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    UNKNOWN_MARK,
    TokenizerError,
    checked_ids,
    refuse_above,
)

WORDS_FILE = "tokenizer.json"
_FORMAT_VERSION = 1


@dataclass(frozen=True)
class WordTokenizer:
    """Each word or symbol is a token. Entries 0 to 3 of `entries` are SPECIALS."""

    entries: tuple[str, ...]
    kind: Literal["words"] = field(default="words", init=False)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {entry: token for token, entry in enumerate(self.entries)}

    @property
    def vocab_size(self) -> int:
        return len(self.entries)

    def encode(self, text: str) -> list[int]:
        ids = self._ids
        return [ids.get(word, UNK) for word in words(text)]

    def encode_target(self, text: str) -> list[int]:
        return self.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        kept = (token for token in checked_ids(ids, self.vocab_size) if token not in (PAD, BOS, EOS))
        return join_words(UNKNOWN_MARK if token == UNK else self.entries[token] for token in kept)

    def piece(self, token: int) -> str:
        return self.entries[checked_ids([token], self.vocab_size)[0]]

    def vocabulary(self) -> list[str]:
        return list(self.entries)

    def sentence(self, text: str) -> Sentence:
        ids = self.encode(text)
        return Sentence.cut(text, ids, [*map(self.piece, ids)], word_spans(text), [token == UNK for token in ids])

    def word_of_output(self, ids: Sequence[int]) -> list[int]:
        index, out = -1, []
        for token in checked_ids(ids, self.vocab_size):
            special = token in (PAD, BOS, EOS)
            index += not special
            out.append(-1 if special else index)
        return out

    def save(self, folder: Path) -> Path:
        path = folder / WORDS_FILE
        content = {"version": _FORMAT_VERSION, "kind": self.kind, "entries": self.entries}
        path.write_text(json.dumps(content, ensure_ascii=False, indent=0), encoding="utf-8")
        return path


def train_words(sentences: list[str], vocab_size: int | None) -> WordTokenizer:
    """A tokenizer of the words of these sentences, or of the `vocab_size` most frequent, specials counted."""
    counts = Counter(word for sentence in sentences for word in words(sentence))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    refuse_above(len(ranked) + len(SPECIALS), vocab_size, "words")
    kept = ranked if vocab_size is None else ranked[: vocab_size - len(SPECIALS)]
    return WordTokenizer((*SPECIALS, *kept))


def read_words(text: str) -> WordTokenizer:
    """The tokenizer in this content of a file; TokenizerError where there is none."""
    try:
        content = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise TokenizerError(f"{WORDS_FILE} is not JSON, or it is damaged") from error
    if not isinstance(content, dict) or content.get("version") != _FORMAT_VERSION or content.get("kind") != "words":
        raise TokenizerError(f"{WORDS_FILE} is not a tokenizer of words of version {_FORMAT_VERSION}")
    entries = content.get("entries")
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise TokenizerError(f"{WORDS_FILE} has no list of words under 'entries'")
    if tuple(entries[: len(SPECIALS)]) != SPECIALS or len(set(entries)) != len(entries):
        raise TokenizerError(
            f"the entries of {WORDS_FILE} must begin with {', '.join(SPECIALS)}, and each be there once"
        )
    return WordTokenizer(tuple(entries))
