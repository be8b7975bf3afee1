"""Vocabulary size against sentence length and coverage, for four kinds of tokenizers of one corpus."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.tokens.reference import UNKNOWN, pieces_again
from transformer.analysis.tokens.vocabulary_sizes import SizeCurve, both_sides, learned, size_curve
from transformer.config import CorpusConfig
from transformer.data.corpora import load_corpus
from transformer.data.corpus_cache import loaded
from transformer.figures.tables import column_table
from transformer.figures.tokens.vocabulary import Line, vocabulary_figure
from transformer.text.pairs import words
from transformer.text.tokenizer import Tokenizer, TokenizerKind

NAMES: dict[TokenizerKind, str] = {"char": "characters", "words": "words", "bpe": "BPE", "unigram": "unigram"}
_HOW = "learned anew, and cut by plain Python from the list of pieces"


@dataclass(frozen=True)
class SizesData:
    """A curve for each kind."""

    curves: tuple[SizeCurve, ...]
    pairs: int
    """The pairs that were held out and measured."""


@dataclass(frozen=True, kw_only=True)
class VocabularySizes:
    """Tokenizers of a corpus at several sizes, on pairs that they did not learn from."""

    sizes: tuple[int, ...] = (100, 200, 300, 400, 500, 700, 1000, 1400, 2000)
    """The sizes asked for; a kind takes the nearest that the text allows."""
    learned_from: int = 3_000
    """The most training pairs that they learn from."""
    measured_on: int = 200
    """The most held-out pairs, of which both sides are cut."""
    name = "vocabulary-sizes"
    explained = (
        "What a larger vocabulary buys: fewer tokens in a sentence, so shorter sequences for the model, until there is "
        "little more to join. Below, the share of words that can be written with the entries at all. Both are measured "
        "on sentences that the tokenizers did not learn from."
    )

    def data(self, corpus: CorpusConfig) -> SizesData:
        """Learns each tokenizer and cuts the held-out sentences."""
        text = loaded(corpus)
        texts, held_out = both_sides(text, self.learned_from, "train"), both_sides(text, self.measured_on, "random")
        return SizesData(tuple(size_curve(kind, texts, held_out, self.sizes) for kind in NAMES), len(held_out) // 2)

    def figure(self, data: SizesData, *, dark: bool = False) -> go.Figure:
        """A line for each kind in both panels."""
        lines = [Line(NAMES[each.kind], each.sizes, each.length, each.covered) for each in data.curves]
        return vocabulary_figure(lines, dark=dark)

    def tables(self, data: SizesData) -> tuple[DataFrame, ...]:
        """A table for each kind."""
        return tuple(
            column_table(
                NAMES[each.kind],
                [f"{size} entries" for size in each.sizes],
                {
                    "vocabulary": each.sizes,
                    "tokens in a sentence, mean": each.length,
                    "words covered, share": each.covered,
                },
            )
            for each in data.curves
        )

    def checks(self, corpus: CorpusConfig, data: SizesData) -> Iterator[Check]:
        """Learns the tokenizers anew, cuts the sentences by other code and looks up each word by itself."""
        text = load_corpus(corpus)
        texts, held_out = both_sides(text, self.learned_from, "train"), both_sides(text, self.measured_on, "random")
        yield agree("Pairs that were measured", data.pairs, len(held_out) / 2, 0, "counted again")
        for each in data.curves:
            tokenizers, name = learned(each.kind, texts, self.sizes), NAMES[each.kind]
            entries = [len(set(tokenizer.vocabulary())) for tokenizer in tokenizers]
            yield agree(f"Vocabularies of {name}", each.sizes, entries, 0, "learned anew, entries counted")
            found = [_recounted(tokenizer, held_out) for tokenizer in tokenizers]
            lengths, covered = zip(*found, strict=True)
            yield agree(f"Mean lengths in {name}", each.length, lengths, 1e-9, _HOW)
            yield agree(f"Words covered by {name}", each.covered, covered, 1e-9, f"{_HOW}, word by word")


def _recounted(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[float, float]:
    """Returns the mean number of tokens, and the share of words whose characters all have pieces."""
    cut, known = pieces_again(tokenizer), set(tokenizer.vocabulary())
    length = sum(len(cut(text)) for text in texts) / len(texts)
    counts = Counter(word for text in texts for word in words(text))
    units = (lambda word: [word]) if tokenizer.kind == "words" else list
    covered = sum(n for word, n in counts.items() if known.issuperset(units(word)) and word != UNKNOWN)
    return length, covered / counts.total()
