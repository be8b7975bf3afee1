"""A tokenizer of two sentencepiece models over one vocabulary, as Marian checkpoints have it.

The source is cut by the one, the target by the other; what both make are entries of one list. Nothing is trained here.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from transformer.text.sentence import Sentence, words_at
from transformer.text.token_ids import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    UNKNOWN_MARK,
    checked_ids,
    valid_text,
)

VOCABULARY_FILE, SOURCE_FILE, TARGET_FILE = "tokenizer.pieces.json", "tokenizer.source.spm", "tokenizer.target.spm"
_LANGUAGE = re.compile(r"\s*(>>[^<\s]+<<)\s*")
_KINDS: dict[int, Literal["bpe", "unigram", "char"]] = {1: "unigram", 2: "bpe", 4: "char"}


@dataclass(frozen=True, eq=False)
class TwoSidedTokenizer:
    """Pieces of a source model and of a target model, looked up in one list whose first four entries are SPECIALS."""

    entries: tuple[str, ...]
    source_model: bytes = field(repr=False)
    target_model: bytes = field(repr=False)
    kind: Literal["bpe", "unigram", "char"]
    _source: sentencepiece.SentencePieceProcessor = field(repr=False)
    _target: sentencepiece.SentencePieceProcessor = field(repr=False)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {entry: token for token, entry in enumerate(self.entries) if token > UNK}

    @property
    def vocab_size(self) -> int:
        return len(self.entries)

    def encode(self, text: str) -> list[int]:
        """The ids of a source; a language code such as >>fr<< in front is one token."""
        return [token for token, _ in self._cut(text)]

    def encode_target(self, text: str) -> list[int]:
        """The ids of a target."""
        return [self._ids.get(piece, UNK) for piece in self._target.encode(valid_text(text), out_type=str)]

    def decode(self, ids: Iterable[int]) -> str:
        kept = [token for token in checked_ids(ids, self.vocab_size) if token not in (PAD, BOS, EOS)]
        text = "".join(UNKNOWN_MARK if token == UNK else self.entries[token] for token in kept)
        return text.replace("▁", " ").removeprefix(" ")

    def piece(self, token: int) -> str:
        return self.entries[checked_ids([token], self.vocab_size)[0]]

    def vocabulary(self) -> list[str]:
        return list(self.entries)

    def sentence(self, text: str) -> Sentence:
        text = valid_text(text)
        cut = self._cut(text)
        ids, starts = [token for token, _ in cut], [start for _, start in cut]
        spans = list(zip(starts, [*starts[1:], len(text)], strict=False))
        return Sentence.cut(text, ids, [*map(self.piece, ids)], spans, [token == UNK for token in ids])

    def word_of_output(self, ids: Sequence[int]) -> list[int]:
        text, starts = "", []
        for token in checked_ids(ids, self.vocab_size):
            piece = "" if token in (PAD, BOS, EOS) else UNKNOWN_MARK if token == UNK else self.entries[token]
            piece = piece.replace("▁", " ")
            starts.append(len(text) + len(piece) - len(piece.lstrip()))
            text += piece
        owners = words_at(text, starts)
        return [-1 if token in (PAD, BOS, EOS) else owner for token, owner in zip(ids, owners, strict=True)]

    def save(self, folder: Path) -> Path:
        path = folder / VOCABULARY_FILE
        path.write_text(json.dumps({"version": 1, "entries": self.entries}, ensure_ascii=False), encoding="utf-8")
        (folder / SOURCE_FILE).write_bytes(self.source_model)
        (folder / TARGET_FILE).write_bytes(self.target_model)
        return path

    def _cut(self, text: str) -> list[tuple[int, int]]:
        """The ids of a source, each with the character at which it begins."""
        text = valid_text(text)
        code = _LANGUAGE.match(text)
        start = code.end() if code else 0
        first = [(self._ids.get(code[1], UNK), code.start(1))] if code else []
        mapping = self._source.encode(text[start:], return_type="offset_mapping")
        places = zip(mapping["ids"], mapping["offsets"], strict=True)
        cut = [(self._ids.get(self._source.id_to_piece(token), UNK), start + begin) for token, (begin, _) in places]
        return [*first, *cut]


def read_two_sided(source: Path, target: Path, entries: Sequence[str]) -> TwoSidedTokenizer:
    """The tokenizer of two sentencepiece files and the pieces of a vocabulary, in the order pad, start, eos, unk, rest.

    ValueError or OSError where a file is none.
    """
    models, processors, kind = [], [], None
    for path in (source, target):
        if not path.is_file():
            raise ValueError(f"there is no {path.name}")
        model = path.read_bytes()
        try:
            processors.append(sentencepiece.SentencePieceProcessor(model_proto=model))
            proto = sentencepiece_model_pb2.ModelProto.FromString(model)  # pyright: ignore[reportAttributeAccessIssue]
        except Exception as error:  # sentencepiece raises RuntimeError, protobuf a class of its own
            raise ValueError(f"{path.name} is no sentencepiece model, or it is damaged") from error
        kind = kind or _KINDS.get(proto.trainer_spec.model_type)
        models.append(model)
    if kind is None:
        raise ValueError(f"the sentencepiece model of {source.name} is none of unigram, bpe and char")
    named = (*SPECIALS, *entries[len(SPECIALS) :])
    if len(set(named)) < len(named):
        raise ValueError("its vocabulary holds an entry twice, or one that is named like a special token")
    return TwoSidedTokenizer(named, models[0], models[1], kind, processors[0], processors[1])


def load_two_sided(folder: Path) -> TwoSidedTokenizer:
    """The tokenizer that `save` wrote; ValueError or OSError where it is damaged."""
    content = json.loads((folder / VOCABULARY_FILE).read_text(encoding="utf-8"))
    entries = content.get("entries") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise ValueError(f"{VOCABULARY_FILE} has no list of pieces under 'entries'")
    return read_two_sided(folder / SOURCE_FILE, folder / TARGET_FILE, entries)
