"""Tests of corpus statistics against slow, plain recounts."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from transformer.config import CorpusConfig
from transformer.data import statistics as module
from transformer.data.cleaning import Malformed
from transformer.data.corpora import (
    Corpus,
    CorpusError,
    corpus_of_pairs,
    corpus_tokenizer,
    load_corpus,
    tokenizer_texts,
)
from transformer.data.pair_files import PairFile
from transformer.data.statistics import (
    MOST_PAIRS,
    OUTLIER_AT,
    corpus_stats,
    spaced,
)
from transformer.text.pairs import Pair, words
from transformer.text.tokenizer import Tokenizer, TokenizerError, train_tokenizer

NAMES = "Ann Ben Cleo Dan Eve Finn Gus Hal Ida Jon Kim Lou".split()
DEEDS = "sees hears follows helps the old green bird near this very small house by river".split()


def sentences(n: int) -> list[tuple[str, str]]:
    """Different ones of 3 to 9 words; the target says the words backwards, a little longer."""
    made = []
    for i in range(n):
        said = [NAMES[i % 12], *(DEEDS[(i // 12 + k * (1 + i % 5)) % len(DEEDS)] for k in range(2 + i % 7)), str(i)]
        made.append((" ".join(said) + ".", " ".join(f"{word}a" for word in reversed(said)) + "!"))
    return made


ROWS = [*sentences(400), *((source, target + " Oh!") for source, target in sentences(30)), *sentences(5)]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpus_of_pairs(PairFile("mine.tsv", [*ROWS, Malformed("no second column"), ("x", "y" * 600)]))


@pytest.fixture(scope="module")
def tokenizer(corpus: Corpus) -> Tokenizer:
    return corpus_tokenizer(corpus, CorpusConfig(name="mine.tsv", tokenizer="bpe", vocab_size=400))


def test_every_number_equals_a_plain_recount(corpus, tokenizer):
    found = corpus_stats(corpus, tokenizer)
    assert found.sizes == {
        "train": len(corpus.train),
        "validation": len(corpus.validation),
        "random": len(corpus.held_out["random"]),
    }
    assert found.counted == len(corpus.train)
    assert found.words.source.tolist() == [len(words(pair.source)) for pair in corpus.train]
    assert found.words.target.tolist() == [len(words(pair.target)) for pair in corpus.train]
    assert found.tokens is not None
    assert found.tokens.source.tolist() == [len(tokenizer.encode(pair.source)) for pair in corpus.train]
    assert found.tokens.target.tolist() == [len(tokenizer.encode(pair.target)) for pair in corpus.train]
    counts = Counter(pair.source for pair in corpus.train)
    assert (found.repeats.pairs, found.repeats.sources) == (len(corpus.train), len(counts))
    assert found.repeats.most == tuple((source, n) for source, n in counts.most_common(5) if n > 1) != ()
    assert set(found.samples) <= set(corpus.train) and len(found.samples) == module.SAMPLES


def test_a_histogram_counts_every_pair_at_its_length(corpus):
    lengths = corpus_stats(corpus).words
    for side in ("source", "target"):
        slow = Counter(len(words(getattr(pair, side))) for pair in corpus.train)
        assert {i: n for i, n in enumerate(lengths.histogram(side)) if n} == slow
    assert len(lengths.histogram("source")) == len(lengths.histogram("target"))


def test_what_was_dropped_comes_with_examples(corpus):
    report = corpus_stats(corpus).report
    assert report is not None and report.dropped == {"malformed": 1, "too_long": 1, "duplicate": 5}
    assert report.examples["malformed"] == ("no second column",)
    assert report.examples["duplicate"] == tuple("\t".join(row) for row in ROWS[:3])
    (long,) = report.examples["too_long"]
    assert long.startswith("x\tyyy") and long.endswith("…") and len(long) < 200
    assert corpus_stats(load_corpus("reverse")).report is None


def test_outliers_are_those_that_a_plain_recount_finds(corpus):
    odd = [Pair("Ann sees the old green bird near this house.", "Oh."), Pair("Go.", "y " * 200 + "now and then")]
    pairs = (*corpus.train[:100], odd[0], *corpus.train[100:], odd[1])
    found = corpus_stats(replace(corpus, train=pairs))
    logs = [math.log((len(pair.target) + 10) / (len(pair.source) + 10)) for pair in pairs]
    median = statistics.median(logs)
    spread = max(1.4826 * statistics.median(abs(log - median) for log in logs), 0.1)
    slow = {pair: (log - median) / spread for pair, log in zip(pairs, logs, strict=True)}
    expected = sorted((pair for pair in slow if abs(slow[pair]) > OUTLIER_AT), key=lambda pair: -abs(slow[pair]))
    assert [outlier.pair for outlier in found.outliers] == expected == [odd[1], odd[0]]
    assert found.n_outliers == 2 and found.usual_ratio == pytest.approx(math.exp(median))
    for outlier in found.outliers:
        assert outlier.deviations == pytest.approx(slow[outlier.pair])
        assert outlier.ratio == pytest.approx(len(outlier.pair.target) / len(outlier.pair.source))


def test_pairs_that_are_all_alike_hold_no_outlier():
    found = corpus_stats(load_corpus("copy"))
    assert found.n_outliers == 0 and found.usual_ratio == 1


@pytest.mark.parametrize("name", ["reverse", "pronouns-en-fr"])
def test_of_a_generated_corpus_a_bounded_number_of_pairs_is_made(name, monkeypatch):
    monkeypatch.setattr(module, "MOST_PAIRS", 50)
    asked = []
    corpus = load_corpus(name)

    class Train(Sequence):
        def __len__(self) -> int:
            return len(corpus.train)

        def __getitem__(self, index: int) -> Pair:
            asked.append(index)
            return corpus.train[index]

    found = corpus_stats(replace(corpus, train=Train()))
    assert found.counted == 50 == found.repeats.pairs
    assert 50 <= len(asked) <= 60  # the type checker of the tests looks at a few
    assert found.sizes["train"] == len(corpus.train)
    assert np.ptp(asked) > 0.9 * len(corpus.train)


def test_spaced_takes_all_of_few_and_even_steps_of_many():
    pairs = [Pair(str(i), str(i)) for i in range(10)]
    assert spaced(pairs, 100) == pairs and spaced([], 5) == []
    assert [pair.source for pair in spaced(pairs, 5)] == ["0", "2", "4", "6", "8"]
    assert MOST_PAIRS >= 1_000


@pytest.mark.parametrize("kind", ["words", "char", "bpe", "unigram"])
def test_the_ceiling_is_the_largest_vocabulary_that_can_be_learned(corpus, kind):
    texts = list(tokenizer_texts(corpus))
    with pytest.raises(TokenizerError) as caught:
        train_tokenizer(kind, texts, 10_000_000)
    ceiling = caught.value.ceiling
    assert ceiling is not None
    assert train_tokenizer(kind, texts, ceiling).vocab_size == ceiling
    with pytest.raises(TokenizerError) as caught:
        train_tokenizer(kind, texts, ceiling + 1)
    assert caught.value.ceiling == ceiling


def test_a_corpus_of_too_few_pairs_never_gets_as_far():
    with pytest.raises(CorpusError, match="too few"):
        corpus_of_pairs(PairFile("mine.tsv", ROWS[:3]))
