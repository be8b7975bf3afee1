"""The text of a plan: its corpus, cut into tokens as the plan asks, and what can be counted in it. Cached."""

from dataclasses import dataclass, replace
from typing import TypeVar

from jaxtyping import Int
from numpy import ndarray

from pages.shared.cache import cached
from pages.train.plan_errors import has_longest
from pages.training.plans import Plan
from transformer.config import CorpusConfig
from transformer.data.batches import POOL_SIZE, BatchStream
from transformer.data.corpora import Corpus, CorpusError
from transformer.data.corpus_cache import counted, loaded, prepared, stamp
from transformer.data.statistics import CorpusStats, spaced
from transformer.data.statistics import longer_sides as longer_sides_of
from transformer.text.tokenizer import Tokenizer, TokenizerError

Found = TypeVar("Found")

MEASURED_PAIRS = 2_000
"""The most training pairs whose tokens are counted, evenly spaced, to see if they fit."""


@dataclass(frozen=True)
class Text:
    """A corpus and its tokenizer."""

    corpus: Corpus
    tokenizer: Tokenizer


def config_of(plan: Plan) -> CorpusConfig:
    """Returns the corpus settings of a plan, whatever else is wrong with it; ValueError where these are wrong."""
    values = plan.values("corpus")
    if not has_longest(plan.corpus):
        values["longest"] = None
    return CorpusConfig(**values)


def text_of(plan: Plan) -> Text:
    """Returns corpus and tokenizer of a plan. CorpusError, TokenizerError or ValueError where there is none."""
    return Text(*_raised(_text(config_of(plan))))


def corpus_of(plan: Plan) -> Corpus:
    """Returns the corpus of a plan. CorpusError where there is none."""
    config = config_of(plan)
    return _raised(_corpus(_untokenized(config)))


def longer_sides(plan: Plan) -> Int[ndarray, " pair"]:
    """Counts the tokens of the longer side of some training pairs, its bos or eos included. Raises as `text_of`."""
    return _longer_sides(config_of(plan))


def stats_of(plan: Plan) -> CorpusStats:
    """Returns the statistics of a plan's corpus. Raises as `text_of`."""
    return _stats(config_of(plan))


def steps_an_epoch(plan: Plan) -> float:
    """Returns the optimiser steps in which every training pair is seen once. Raises as `text_of`; ValueError if no pair
    fits. They are counted on the first pool of the very stream that a run reads."""
    model, train, _ = plan.configs()
    return _steps_an_epoch(config_of(plan), train.batch_tokens, model.max_length) / train.accumulate


def _untokenized(config: CorpusConfig) -> CorpusConfig:
    """Returns the same settings without those of the tokenizer: all that the sentences depend on."""
    return replace(config, tokenizer="auto", vocab_size=None)


def _stamp(config: CorpusConfig, *_: object) -> tuple[int, int]:
    """Returns a stamp that changes whenever the file of the corpus does."""
    return stamp(config)


@cached(max_entries=12, spinner="Reading the corpus", shared=True, also=_stamp)
def _corpus(config: CorpusConfig) -> Corpus | CorpusError:
    try:
        return loaded(config)
    except CorpusError as error:  # kept too: finding it again would take as long
        return error


@cached(max_entries=24, spinner="Learning the tokens of this corpus", shared=True, also=_stamp)
def _text(config: CorpusConfig) -> tuple[Corpus, Tokenizer] | CorpusError | TokenizerError:
    corpus = _corpus(_untokenized(config))
    if isinstance(corpus, Exception):
        return corpus
    try:
        return corpus, prepared(config)[1]  # where the run finds it again
    except TokenizerError as error:
        return error


@cached(max_entries=48, spinner="Counting tokens", also=_stamp)
def _longer_sides(config: CorpusConfig) -> Int[ndarray, " pair"]:
    corpus, tokenizer = _raised(_text(config))
    return longer_sides_of(spaced(corpus.train, MEASURED_PAIRS), tokenizer)


@cached(max_entries=24, spinner="Reading through the corpus", also=_stamp)
def _stats(config: CorpusConfig) -> CorpusStats:
    _raised(_text(config))
    return counted(config)


@cached(max_entries=48, spinner="Counting batches", also=_stamp)
def _steps_an_epoch(config: CorpusConfig, batch_tokens: int, max_length: int) -> float:
    corpus, tokenizer = _raised(_text(config))
    stream = BatchStream(corpus.train, tokenizer, batch_tokens=batch_tokens, seed=0, max_length=max_length)
    for batches, (_, after) in enumerate(stream, start=1):
        if (after.epoch, after.pool) != (0, 0):
            pools = 1 if after.epoch else -(-len(corpus.train) // POOL_SIZE)
            return batches * (len(corpus.train) / POOL_SIZE if pools > 1 else 1)
    raise AssertionError("a stream does not end")


def _raised(found: Found | CorpusError | TokenizerError) -> Found:
    """Returns the result; raises an error that was kept in its place."""
    if isinstance(found, Exception):
        raise found
    return found
