"""What the size of a vocabulary costs and gives: the length of sentences in tokens, and how many words can be read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.data.corpora import Corpus
from transformer.data.statistics import spaced
from transformer.text.pairs import words
from transformer.text.tokenizer import Tokenizer, TokenizerKind, train_nearest


@dataclass(frozen=True)
class SizeCurve:
    """One kind of tokenizer, learned at several sizes, on sentences that it did not learn from."""

    kind: TokenizerKind
    sizes: Int[ndarray, " size"]
    """The vocabularies that came about, each once."""
    length: Float[ndarray, " size"]
    """The mean number of tokens of a sentence."""
    covered: Float[ndarray, " size"]
    """The share of words that are read without <unk> and without single bytes."""


def both_sides(corpus: Corpus, pairs: int, split: str) -> list[str]:
    """Returns both sides of evenly spaced pairs of a split, "train" or one that is held out."""
    chosen = spaced(corpus.train if split == "train" else corpus.held_out[split], pairs)
    return [side for pair in chosen for side in (pair.source, pair.target)]


def learned(kind: TokenizerKind, texts: Sequence[str], sizes: Sequence[int]) -> list[Tokenizer]:
    """Returns a tokenizer of each size that the text allows, from the smallest."""
    found: list[Tokenizer] = []
    reached = 0
    for size in sorted(sizes):
        if found and size <= found[-1].vocab_size:  # the text needs at least as many
            continue
        if found and found[-1].vocab_size < reached:  # and has no more
            break
        tokenizer, reached = train_nearest(kind, texts, size), size
        if not found or tokenizer.vocab_size > found[-1].vocab_size:
            found.append(tokenizer)
    return found


def size_curve(kind: TokenizerKind, texts: Sequence[str], held_out: Sequence[str], sizes: Sequence[int]) -> SizeCurve:
    """Returns lengths and coverage of sentences that were held out."""
    tokenizers = learned(kind, texts, sizes)
    n_words = sum(len(words(text)) for text in held_out)
    lengths, covered = [], []
    for tokenizer in tokenizers:
        read = [tokenizer.sentence(text) for text in held_out]
        lengths.append(sum(len(one.ids) - 1 for one in read) / len(read))  # without the end mark
        strange = sum(sum(word in one.unseen for word in words(one.text)) for one in read)
        covered.append(1 - strange / n_words)
    sizes_found = np.array([tokenizer.vocab_size for tokenizer in tokenizers])
    return SizeCurve(kind, sizes_found, np.array(lengths), np.array(covered))
