"""Statistics of a corpus before anything learns from it: sizes, lengths, samples, repeats, odd pairs, its vocabulary.

Generated corpora make a pair when it is asked for, so lengths, samples and odd pairs are read off at most MOST_PAIRS
evenly spaced training pairs; `counted` says how many those were. Not here: what cleaning dropped, which the corpus
brings along (`Corpus.report`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.data.cleaning import CleaningReport
from transformer.data.corpora import Corpus
from transformer.text.pairs import Pair, words
from transformer.text.tokenizer import Tokenizer

MOST_PAIRS = 10_000
"""Training pairs that are looked at."""
SAMPLES = 10
MOST_OUTLIERS = 10
OUTLIER_AT = 4.0
"""Robust standard deviations from the usual ratio of lengths at which a pair is probably no translation."""
_ADDED_CHARACTERS = 10
"""Added to both lengths: of short sentences any ratio is usual ("Hi." is "Guten Tag.")."""
_LEAST_SPREAD = 0.1

Unit = Literal["words", "tokens"]


@dataclass(frozen=True)
class Lengths:
    """The lengths of the counted training pairs."""

    unit: Unit
    """Words of `pairs.words`, or tokens without bos and eos."""
    source: Int[ndarray, " pair"]
    target: Int[ndarray, " pair"]

    def histogram(self, side: Literal["source", "target"]) -> Int[ndarray, " length"]:
        """The number of sides of each length from 0 to the longest of either side."""
        longest = max(self.source.max(initial=0), self.target.max(initial=0))
        return np.bincount(self.source if side == "source" else self.target, minlength=int(longest) + 1)


@dataclass(frozen=True)
class Repeats:
    """Training sources that occur more than once, each time with another translation where the corpus is a file."""

    pairs: int
    """Looked at: all training pairs of a file, the counted ones of a generated corpus."""
    sources: int
    """Different ones among them."""
    most: tuple[tuple[str, int], ...]
    """The most frequent sources that occur more than once, and how often each does."""


@dataclass(frozen=True)
class Outlier:
    """A pair whose sides differ in length far more, or less, than is usual in this corpus."""

    pair: Pair
    ratio: float
    """Characters of the target for each one of the source."""
    deviations: float
    """The distance of its logarithm from the median, in robust standard deviations; negative for a short target."""


@dataclass(frozen=True)
class CorpusStats:
    """The result of `corpus_stats`."""

    sizes: dict[str, int]
    """Pairs in each split: "train", "validation", then those held out."""
    counted: int
    """Training pairs that lengths, samples and outliers are taken from."""
    words: Lengths
    tokens: Lengths | None
    """None where no tokenizer was given."""
    samples: tuple[Pair, ...]
    repeats: Repeats
    usual_ratio: float
    """Median of the target's characters for each one of the source, short sentences evened out."""
    n_outliers: int
    outliers: tuple[Outlier, ...]
    """The farthest ones."""
    report: CleaningReport | None
    """Counts of what cleaning dropped, by reason; None where nothing is cleaned."""


def corpus_stats(corpus: Corpus, tokenizer: Tokenizer | None = None) -> CorpusStats:
    """Returns the statistics of a corpus; takes about a second, however large it is."""
    pairs = spaced(corpus.train, MOST_PAIRS)
    deviations, usual = _deviations(pairs)
    odd = np.flatnonzero(np.abs(deviations) > OUTLIER_AT)
    farthest = odd[np.argsort(-np.abs(deviations[odd]), kind="stable")][:MOST_OUTLIERS]
    return CorpusStats(
        sizes={
            "train": len(corpus.train),
            "validation": len(corpus.validation),
            **{split: len(held_out) for split, held_out in corpus.held_out.items()},
        },
        counted=len(pairs),
        words=_lengths(pairs, "words", words),
        tokens=None if tokenizer is None else _lengths(pairs, "tokens", tokenizer.encode),
        samples=tuple(spaced(pairs, SAMPLES)),
        repeats=_repeats(corpus.train if isinstance(corpus.train, tuple) else pairs),
        usual_ratio=usual,
        n_outliers=len(odd),
        outliers=tuple(_outlier(pairs[i], float(deviations[i])) for i in farthest),
        report=corpus.report,
    )


def longer_sides(pairs: Sequence[Pair], tokenizer: Tokenizer) -> Int[ndarray, " pair"]:
    """Returns the tokens of each pair's longer side, its bos or eos included."""
    lengths = ((len(tokenizer.encode(pair.source)), len(tokenizer.encode_target(pair.target))) for pair in pairs)
    return np.fromiter((1 + max(sides) for sides in lengths), dtype=np.int64)


def left_out(corpus: Corpus, tokenizer: Tokenizer, max_length: int) -> str:
    """Returns a sentence on the training pairs that are too long for a model of this `max_length`; empty if none is.

    Of more than MOST_PAIRS pairs so many are counted, evenly spaced.
    """
    return too_long(longer_sides(spaced(corpus.train, MOST_PAIRS), tokenizer), len(corpus.train), max_length)


def too_long(sides: Int[ndarray, " pair"], n_pairs: int, max_length: int) -> str:
    """Returns that sentence from the tokens of the longer sides of some, or of all, of so many pairs."""
    lost = int((sides > max_length).sum())
    if not lost:
        return ""
    share = f"{lost:,} of {n_pairs:,}" if len(sides) == n_pairs else f"About {100 * lost / len(sides):.2g} % of the"
    return (
        f"{share} training pairs are longer than {max_length:,} tokens on a side and are left out; the longest has "
        f"{sides.max():,}."
    )


def spaced(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """Up to `count` evenly spaced ones of these pairs."""
    n = min(len(pairs), count)
    return [pairs[i * len(pairs) // n] for i in range(n)]


def _lengths(pairs: Sequence[Pair], unit: Unit, cut: Callable[[str], Sequence[object]]) -> Lengths:
    found = np.array([(len(cut(pair.source)), len(cut(pair.target))) for pair in pairs], dtype=np.int64).reshape(-1, 2)
    return Lengths(unit, found[:, 0], found[:, 1])


def _repeats(pairs: Sequence[Pair]) -> Repeats:
    counts = Counter(pair.source for pair in pairs)
    most = tuple((source, count) for source, count in counts.most_common(5) if count > 1)
    return Repeats(len(pairs), len(counts), most)


def _deviations(pairs: Sequence[Pair]) -> tuple[Float[ndarray, " pair"], float]:
    """Returns the distance of each pair's ratio of lengths from the usual one, and the usual one.

    In units of 1.4826 median absolute deviations, a standard deviation where the logarithms are normal.
    """
    lengths = np.array([(len(pair.source), len(pair.target)) for pair in pairs], dtype=np.float64).reshape(-1, 2)
    logs = np.log((lengths[:, 1] + _ADDED_CHARACTERS) / (lengths[:, 0] + _ADDED_CHARACTERS))
    median = float(np.median(logs))
    spread = max(1.4826 * float(np.median(np.abs(logs - median))), _LEAST_SPREAD)
    return (logs - median) / spread, float(np.exp(median))


def _outlier(pair: Pair, deviations: float) -> Outlier:
    return Outlier(pair, len(pair.target) / len(pair.source), deviations)
