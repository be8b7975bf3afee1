"""Text to token ids and back: whole words, or sentencepiece (bpe, unigram, char).

One joint vocabulary serves source and target, and pad, bos, eos and unk are ids 0 to 3 in every kind. Here:
training, saving and loading. Not here: what a word is (pairs.py), and adding bos and eos (data.py).
"""

import io
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import sentencepiece
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from transformer.pairs import join_words, word_spans, words
from transformer.two_sided_tokenizer import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    UNKNOWN_MARK,
    VOCABULARY_FILE,
    load_two_sided,
)

TokenizerKind = Literal["words", "bpe", "unigram", "char"]

DEFAULT_VOCAB_SIZE = 4_000
"""Vocabulary asked of bpe and unigram where none is named; less where the text allows less."""

_WORDS_FILE, _SENTENCEPIECE_FILE = "tokenizer.json", "tokenizer.model"
_FORMAT_VERSION = 1


class TokenizerError(Exception):
    """A tokenizer could not be trained or loaded.

    `ceiling` is the largest vocabulary that the text allows, where too large a one was the reason.
    """

    def __init__(self, message: str, ceiling: int | None = None) -> None:
        super().__init__(message)
        self.ceiling = ceiling


@runtime_checkable
class Tokenizer(Protocol):
    """What every kind of tokenizer offers. Immutable: one may serve many threads."""

    @property
    def kind(self) -> TokenizerKind: ...

    @property
    def vocab_size(self) -> int:
        """Number of ids, specials included."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of a source text, without bos and eos; never pad, bos or eos, whatever the text."""
        ...

    def encode_target(self, text: str) -> list[int]:
        """The same of a target text; most kinds cut both sides alike."""
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids: pad, bos and eos are skipped, unk reads as UNKNOWN_MARK.

        ValueError for an id outside the vocabulary.
        """
        ...

    def piece(self, token: int) -> str:
        """The vocabulary entry of one id, as shown on a chip: "▁the", "<0x0A>", "<s>"."""
        ...

    def pieces(self, text: str) -> list[str]:
        """The vocabulary entries of `encode(text)`."""
        ...

    def vocabulary(self) -> list[str]:
        """Every entry, by id."""
        ...

    def unknown(self, text: str) -> list[str]:
        """The words of the text with a part that was never seen in training, each once, in order."""
        ...

    def word_of_token(self, text: str) -> list[int]:
        """For each token of `encode(text)`, the index in `words(text)` of the word it belongs to.

        White space belongs to the word after it, and at the end to the word before. -1 in a text without words.
        """
        ...

    def word_of_output(self, ids: Sequence[int]) -> list[int]:
        """The same for ids that a model wrote: indices in `words(decode(ids))`, -1 for pad, bos and eos.

        In a tokenizer of words every other token is one word, however it is written.
        """
        ...

    def save(self, folder: Path) -> Path:
        """The file written into this folder."""
        ...


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
        kept = (token for token in _checked(ids, self.vocab_size) if token not in (PAD, BOS, EOS))
        return join_words(UNKNOWN_MARK if token == UNK else self.entries[token] for token in kept)

    def piece(self, token: int) -> str:
        return self.entries[_checked([token], self.vocab_size)[0]]

    def pieces(self, text: str) -> list[str]:
        return [self.entries[token] for token in self.encode(text)]

    def vocabulary(self) -> list[str]:
        return list(self.entries)

    def unknown(self, text: str) -> list[str]:
        return list(dict.fromkeys(word for word in words(text) if word not in self._ids))

    def word_of_token(self, text: str) -> list[int]:
        return list(range(len(words(text))))

    def word_of_output(self, ids: Sequence[int]) -> list[int]:
        index, out = -1, []
        for token in _checked(ids, self.vocab_size):
            special = token in (PAD, BOS, EOS)
            index += not special
            out.append(-1 if special else index)
        return out

    def save(self, folder: Path) -> Path:
        path = folder / _WORDS_FILE
        content = {"version": _FORMAT_VERSION, "kind": self.kind, "entries": self.entries}
        path.write_text(json.dumps(content, ensure_ascii=False, indent=0), encoding="utf-8")
        return path


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
        return self._processor.encode(_valid(text))

    def encode_target(self, text: str) -> list[int]:
        return self.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        return self._processor.decode(_checked(ids, self.vocab_size))

    def piece(self, token: int) -> str:
        return self._processor.id_to_piece(_checked([token], self.vocab_size)[0])

    def pieces(self, text: str) -> list[str]:
        return [self._processor.id_to_piece(token) for token in self.encode(text)]

    def vocabulary(self) -> list[str]:
        return [self._processor.id_to_piece(token) for token in range(self.vocab_size)]

    def unknown(self, text: str) -> list[str]:
        text = _valid(text)
        mapping = self._processor.encode(text, return_type="offset_mapping")
        unseen = [
            span
            for token, span in zip(mapping["ids"], mapping["offsets"], strict=True)
            if token == UNK or self._processor.is_byte(token)
        ]
        # A run of unseen characters is one span, which may cover several words.
        found = [text[a:b] for a, b in word_spans(text) if any(a < end and start < b for start, end in unseen)]
        return list(dict.fromkeys(found))

    def word_of_token(self, text: str) -> list[int]:
        offsets = self._processor.encode(_valid(text), return_type="offset_mapping")["offsets"]
        return _words_at(text, [start for start, _ in offsets])

    def word_of_output(self, ids: Sequence[int]) -> list[int]:
        mapping = self._processor.decode(_checked(ids, self.vocab_size), return_type="offset_mapping")
        owners = _words_at(mapping["text"], [start for start, _ in mapping["offsets"]])
        return [-1 if token in (PAD, BOS, EOS) else owner for token, owner in zip(ids, owners, strict=True)]

    def save(self, folder: Path) -> Path:
        path = folder / _SENTENCEPIECE_FILE
        path.write_bytes(self.model)
        return path


def train_tokenizer(kind: TokenizerKind, texts: Iterable[str], vocab_size: int | None = None) -> Tokenizer:
    """A tokenizer learned from these texts; the same texts give the same tokenizer, bit for bit.

    `vocab_size` counts the specials. None takes every word (words), every character (char), or DEFAULT_VOCAB_SIZE
    pieces or as many as the text allows (bpe, unigram). Raises TokenizerError where the text has too few pieces
    for `vocab_size` (the message and `ceiling` say how many it has), or where there is no text.
    """
    sentences = [text for text in map(_valid, texts) if words(text)]
    if not sentences:
        raise TokenizerError("a tokenizer cannot be learned from nothing: there is no text with a word in it")
    match kind:
        case "words":
            return _train_words(sentences, vocab_size)
        case "char":
            return _train_char(sentences, vocab_size)
        case "bpe" | "unigram":
            return _train_subwords(kind, sentences, vocab_size)
        case _:
            raise ValueError(f"tokenizer kind ({kind!r}) must be one of: words, bpe, unigram, char")


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer saved in this folder, of whichever kind; TokenizerError where there is none that can be read."""
    words_file, sentencepiece_file = folder / _WORDS_FILE, folder / _SENTENCEPIECE_FILE
    try:
        if sentencepiece_file.is_file():
            return _from_model(sentencepiece_file.read_bytes())
        if words_file.is_file():
            return _from_json(words_file.read_text(encoding="utf-8"))
        if (folder / VOCABULARY_FILE).is_file():
            return load_two_sided(folder)
    except (OSError, ValueError) as error:
        raise TokenizerError(f"the tokenizer in {folder} cannot be read: {error}") from error
    except TokenizerError as error:
        raise TokenizerError(f"the tokenizer in {folder} cannot be used: {error}") from error
    raise TokenizerError(f"{folder} holds no tokenizer: neither {_WORDS_FILE} nor {_SENTENCEPIECE_FILE} is there")


def _train_words(sentences: list[str], vocab_size: int | None) -> WordTokenizer:
    counts = Counter(word for sentence in sentences for word in words(sentence))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    _refuse_above(len(ranked) + len(SPECIALS), vocab_size, "words")
    kept = ranked if vocab_size is None else ranked[: vocab_size - len(SPECIALS)]
    return WordTokenizer((*SPECIALS, *kept))


def _train_char(sentences: list[str], vocab_size: int | None) -> SentencePieceTokenizer:
    # use_all_vocab takes every character and ignores vocab_size, so an oversized one is refused here.
    everything = _train_sentencepiece("char", sentences, 8_000, use_all_vocab=True, add_dummy_prefix=False)
    _refuse_above(everything.vocab_size, vocab_size, "characters")
    if vocab_size is None or vocab_size == everything.vocab_size:
        return everything
    return _train_sentencepiece("char", sentences, vocab_size, add_dummy_prefix=False)


def _train_subwords(
    kind: Literal["bpe", "unigram"], sentences: list[str], vocab_size: int | None
) -> SentencePieceTokenizer:
    # 0.9995 leaves the rarest characters to the byte pieces, which spell any character.
    options = {"byte_fallback": True, "character_coverage": 0.9995}
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
    return _from_model(model.getvalue())


def _explained(error: RuntimeError, vocab_size: int) -> TokenizerError:
    """The TokenizerError that says in a sentence what sentencepiece reports in its own words."""
    if too_high := re.search(r"too high \(\d+\).*<= (\d+)", str(error)):
        return _too_large(vocab_size, int(too_high[1]), "pieces")
    if too_small := re.search(r"smaller than required_chars. \d+ vs (\d+)", str(error)):
        return TokenizerError(
            f"vocab_size ({vocab_size}) is too small: the characters of this text, the 256 bytes and the "
            f"{len(SPECIALS)} special tokens alone need {too_small[1]}"
        )
    return TokenizerError(f"sentencepiece could not learn a tokenizer from this text: {error}")


def _refuse_above(ceiling: int, vocab_size: int | None, unit: str) -> None:
    if vocab_size is not None and vocab_size > ceiling:
        raise _too_large(vocab_size, ceiling, unit)


def _too_large(vocab_size: int, ceiling: int, unit: str) -> TokenizerError:
    return TokenizerError(
        f"vocab_size ({vocab_size}) is too large: this text has different {unit} for at most {ceiling}; "
        f"take {ceiling} or fewer",
        ceiling=ceiling,
    )


def _from_model(model: bytes) -> SentencePieceTokenizer:
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


def _from_json(text: str) -> WordTokenizer:
    try:
        content = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise TokenizerError(f"{_WORDS_FILE} is not JSON, or it is damaged") from error
    if not isinstance(content, dict) or content.get("version") != _FORMAT_VERSION or content.get("kind") != "words":
        raise TokenizerError(f"{_WORDS_FILE} is not a tokenizer of words of version {_FORMAT_VERSION}")
    entries = content.get("entries")
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise TokenizerError(f"{_WORDS_FILE} has no list of words under 'entries'")
    if tuple(entries[: len(SPECIALS)]) != SPECIALS or len(set(entries)) != len(entries):
        raise TokenizerError(
            f"the entries of {_WORDS_FILE} must begin with {', '.join(SPECIALS)}, and each be there once"
        )
    return WordTokenizer(tuple(entries))


def _checked(ids: Iterable[int], vocab_size: int) -> list[int]:
    checked = [int(token) for token in ids]
    for token in checked:
        if not 0 <= token < vocab_size:
            raise ValueError(f"token id ({token}) must lie in 0..{vocab_size - 1}, the vocabulary of {vocab_size}")
    return checked


def _valid(text: str) -> str:
    """The text with lone surrogates, which no UTF-8 library takes, replaced by "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _words_at(text: str, starts: Sequence[int]) -> list[int]:
    """For each character position, the index of the word there, of the next one, or at the end of the last one."""
    ends = [end for _, end in word_spans(text)]
    return [min(bisect_right(ends, start), len(ends) - 1) for start in starts]
