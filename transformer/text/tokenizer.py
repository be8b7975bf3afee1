"""Text to token ids and back: whole words, or sentencepiece (bpe, unigram, char).

One joint vocabulary serves source and target, and pad, bos, eos and unk are ids 0 to 3 in every kind. Here: what every
kind offers, training, loading. Not here: the kinds themselves, what a word is (pairs.py), adding bos and eos (data.py).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from transformer.text.pairs import words
from transformer.text.sentence import Sentence
from transformer.text.sentencepiece_tokenizer import (
    SENTENCEPIECE_FILE,
    SentencePieceTokenizer,
    read_sentencepiece,
    train_characters,
    train_subwords,
)
from transformer.text.token_ids import BOS, EOS, PAD, SPECIALS, UNK, UNKNOWN_MARK, TokenizerError, valid_text
from transformer.text.two_sided_tokenizer import VOCABULARY_FILE, TwoSidedTokenizer, load_two_sided
from transformer.text.word_tokenizer import WORDS_FILE, WordTokenizer, read_words, train_words

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIALS",
    "UNK",
    "UNKNOWN_MARK",
    "SentencePieceTokenizer",
    "Tokenizer",
    "TokenizerError",
    "TokenizerKind",
    "TwoSidedTokenizer",
    "WordTokenizer",
    "load_tokenizer",
    "train_nearest",
    "train_tokenizer",
]

TokenizerKind = Literal["words", "bpe", "unigram", "char"]


@runtime_checkable
class Tokenizer(Protocol):
    """The interface of every kind of tokenizer. Immutable: one may serve many threads."""

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

    def vocabulary(self) -> list[str]:
        """Every entry, by id."""
        ...

    def sentence(self, text: str) -> Sentence:
        """Returns a source text with its tokens and their words, cut once."""
        ...

    def word_of_output(self, ids: Sequence[int]) -> list[int]:
        """Returns `Sentence.words` for ids that a model wrote, by `words(decode(ids))`; -1 for pad, bos and eos.

        In a tokenizer of words every other token is one word, however it is written.
        """
        ...

    def save(self, folder: Path) -> Path:
        """The file written into this folder."""
        ...


def train_tokenizer(
    kind: TokenizerKind, texts: Iterable[str], vocab_size: int | None = None, *, apart: Sequence[str] = ()
) -> Tokenizer:
    """A tokenizer learned from these texts; the same texts give the same tokenizer, bit for bit.

    `vocab_size` counts the specials. None takes every word (words), every character (char), or DEFAULT_VOCAB_SIZE
    pieces or as many as the text allows (bpe, unigram). Each string of `apart` is a piece by itself, and part of
    no other one, of a bpe or unigram tokenizer. Raises TokenizerError where the text has too few pieces
    for `vocab_size` (the message and `ceiling` say how many it has), or where there is no text.
    """
    sentences = [text for text in map(valid_text, texts) if words(text)]
    if not sentences:
        raise TokenizerError("a tokenizer cannot be learned from nothing: there is no text with a word in it")
    match kind:
        case "words":
            return train_words(sentences, vocab_size)
        case "char":
            return train_characters(sentences, vocab_size)
        case "bpe" | "unigram":
            return train_subwords(kind, sentences, vocab_size, apart)
        case _:
            raise ValueError(f"tokenizer kind ({kind!r}) must be one of: words, bpe, unigram, char")


def train_nearest(kind: TokenizerKind, texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokenizer of this size, or of the nearest that the text allows; a char tokenizer has every character."""
    if kind == "char":
        return train_tokenizer(kind, texts)
    texts = tuple(texts)
    try:
        return train_tokenizer(kind, texts, vocab_size)
    except TokenizerError as error:
        if (nearest := error.ceiling or error.floor) is None:
            raise
        return train_tokenizer(kind, texts, nearest)


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer saved in this folder, of whichever kind; TokenizerError where there is none that can be read."""
    words_file, sentencepiece_file = folder / WORDS_FILE, folder / SENTENCEPIECE_FILE
    try:
        if sentencepiece_file.is_file():
            return read_sentencepiece(sentencepiece_file.read_bytes())
        if words_file.is_file():
            return read_words(words_file.read_text(encoding="utf-8"))
        if (folder / VOCABULARY_FILE).is_file():
            return load_two_sided(folder)
    except (OSError, ValueError, RecursionError) as error:
        raise TokenizerError(f"the tokenizer in {folder} cannot be read: {error}") from error
    except TokenizerError as error:
        raise TokenizerError(f"the tokenizer in {folder} cannot be used: {error}") from error
    raise TokenizerError(f"{folder} holds no tokenizer: neither {WORDS_FILE} nor {SENTENCEPIECE_FILE} is there")
