"""A tokenizer of subwords or characters, learned by sentencepiece and kept as its model file."""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import sentencepiece
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from transformer.setting import Fault
from transformer.text.sentence import Sentence, words_at
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
    too_large,
    valid_text,
)

SENTENCEPIECE_FILE = "tokenizer.model"
DEFAULT_VOCAB_SIZE = 4_000
"""Vocabulary asked of bpe and unigram where none is named; less where the text allows less."""


@dataclass(frozen=True, eq=False)
class SentencePieceTokenizer:
    """Subwords or characters, learned by sentencepiece. Text is taken as it is: no normalisation, spaces kept.

    bpe and unigram fall back to bytes, so every text survives a round trip, save for U+2581, which sentencepiece
    keeps for the space. A char tokenizer has one token a character (a space too), and one unk for a run of
    characters that it never saw.
    """

    kind: Literal["bpe", "unigram", "char"]
    model: bytes = field(repr=False)
    """The serialized sentencepiece model."""
    _processor: sentencepiece.SentencePieceProcessor = field(repr=False)

    @property
    def vocab_size(self) -> int:
        return self._processor.vocab_size()

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(valid_text(text))

    def encode_target(self, text: str) -> list[int]:
        return self.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        return self._processor.decode(checked_ids(ids, self.vocab_size))

    def piece(self, token: int) -> str:
        return self._processor.id_to_piece(checked_ids([token], self.vocab_size)[0])

    def vocabulary(self) -> list[str]:
        return [self._processor.id_to_piece(token) for token in range(self.vocab_size)]

    def is_special(self, token: int) -> bool:
        """Tells whether this entry is no piece of text: a special token, or one byte, as "<0x0A>" is."""
        is_one = self._processor.is_control, self._processor.is_unknown, self._processor.is_byte
        return any(ask(token) for ask in is_one)

    def scores(self) -> list[float]:
        """Returns the score of every entry: of bpe minus the place among its merges, of unigram the log-probability."""
        return [self._processor.get_score(token) for token in range(self.vocab_size)]

    def sentence(self, text: str) -> Sentence:
        text = valid_text(text)
        mapping = self._processor.encode(text, return_type="offset_mapping")
        ids, spans = mapping["ids"], mapping["offsets"]
        new = [token == UNK or self._processor.is_byte(token) for token in ids]
        return Sentence.cut(text, ids, [*map(self.piece, ids)], spans, new)

    def word_of_output(self, ids: Sequence[int]) -> list[int]:
        mapping = self._processor.decode(checked_ids(ids, self.vocab_size), return_type="offset_mapping")
        owners = words_at(mapping["text"], [start for start, _ in mapping["offsets"]])
        return [-1 if token in (PAD, BOS, EOS) else owner for token, owner in zip(ids, owners, strict=True)]

    def save(self, folder: Path) -> Path:
        path = folder / SENTENCEPIECE_FILE
        path.write_bytes(self.model)
        return path


def train_characters(sentences: list[str], vocab_size: int | None) -> SentencePieceTokenizer:
    """A tokenizer of the characters of these sentences, or of the `vocab_size` most frequent, specials counted."""
    # use_all_vocab takes every character and ignores vocab_size, so an oversized one is refused here.
    everything = _train_sentencepiece("char", sentences, 8_000, use_all_vocab=True, add_dummy_prefix=False)
    refuse_above(everything.vocab_size, vocab_size, "characters")
    if vocab_size is None or vocab_size == everything.vocab_size:
        return everything
    return _train_sentencepiece("char", sentences, vocab_size, add_dummy_prefix=False)


def train_subwords(
    kind: Literal["bpe", "unigram"], sentences: list[str], vocab_size: int | None, apart: Sequence[str] = ()
) -> SentencePieceTokenizer:
    """A tokenizer of pieces of these sentences; with None as many as DEFAULT_VOCAB_SIZE or the text allows.

    Each string of `apart` is a piece by itself, and part of no other one.
    """
    # 0.9995 leaves the rarest characters to the byte pieces, which spell any character.
    options = {"byte_fallback": True, "character_coverage": 0.9995, "user_defined_symbols": list(apart)}
    try:
        return _train_sentencepiece(kind, sentences, vocab_size or DEFAULT_VOCAB_SIZE, **options)
    except TokenizerError as error:
        if vocab_size is not None or error.ceiling is None:
            raise
        return _train_sentencepiece(kind, sentences, error.ceiling, **options)


def _train_sentencepiece(
    kind: Literal["bpe", "unigram", "char"], sentences: list[str], vocab_size: int, **options: Any
) -> SentencePieceTokenizer:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=kind,
            vocab_size=vocab_size,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            unk_surface=UNKNOWN_MARK,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=100_000,
            num_threads=1,  # the order of float sums, and with it the model, would depend on the thread count
            minloglevel=2,
            **options,
        )
    except RuntimeError as error:
        raise _explained(error, vocab_size) from error
    return read_sentencepiece(model.getvalue())


def _explained(error: RuntimeError, vocab_size: int) -> TokenizerError:
    """The TokenizerError that says in a sentence what sentencepiece reports in its own words."""
    if too_high := re.search(r"too high \(\d+\).*<= (\d+)", str(error)):
        return too_large(vocab_size, int(too_high[1]), "pieces")
    if too_small := re.search(r"smaller than required_chars. \d+ vs (\d+)", str(error)):
        rule = (
            f"is too small, as the characters of this text, the 256 bytes and the {len(SPECIALS)} special tokens alone "
            f"need {too_small[1]}"
        )
        fix = f"take {too_small[1]} or more, or another tokenizer"
        fault = Fault("vocab_size", rule, fix, {"vocab_size": vocab_size})
        return TokenizerError(fault, floor=int(too_small[1]))
    return TokenizerError(f"sentencepiece could not learn a tokenizer from this text: {error}")


def read_sentencepiece(model: bytes) -> SentencePieceTokenizer:
    """The tokenizer of this serialized model; TokenizerError where it is none, or of another kind."""
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)  # pyright: ignore[reportAttributeAccessIssue]
    except (RuntimeError, DecodeError) as error:
        raise TokenizerError("it is not a sentencepiece model, or it is damaged") from error
    specials = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
    if specials != (PAD, BOS, EOS, UNK):
        raise TokenizerError(f"pad, bos, eos and unk have the ids {specials}, where {(PAD, BOS, EOS, UNK)} is needed")
    match proto.trainer_spec.model_type:
        case 1:
            return SentencePieceTokenizer("unigram", model, processor)
        case 2:
            return SentencePieceTokenizer("bpe", model, processor)
        case 4:
            return SentencePieceTokenizer("char", model, processor)
        case _:
            kind = proto.trainer_spec.model_type
            raise TokenizerError(f"its sentencepiece model type ({kind}) is none of unigram, bpe and char")
