"""The text of a plan: its corpus, cut into tokens as the plan asks, and what can be counted in it. Cached."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st
from jaxtyping import Int
from numpy import ndarray

from pages.train.plan_errors import has_longest
from pages.training.plans import Plan
from transformer.config import CorpusConfig
from transformer.data.batches import POOL_SIZE, BatchStream
from transformer.data.corpora import CORPORA, Corpus, CorpusError
from transformer.data.corpus_cache import loaded, prepared
from transformer.data.statistics import CorpusStats, corpus_stats, spaced
from transformer.text.tokenizer import Tokenizer, TokenizerError

MEASURED_PAIRS = 2_000
"""Training pairs whose tokens are counted at most, evenly spaced, to see whether they fit."""


@dataclass(frozen=True)
class Text:
    """A corpus and its tokenizer."""

    corpus: Corpus
    tokenizer: Tokenizer


def config_of(plan: Plan) -> CorpusConfig:
    """The corpus settings of a plan, whatever else is wrong with it; ValueError where they are wrong themselves."""
    values = plan.corpus_values()
    if not has_longest(plan.corpus):
        values["longest"] = None
    return CorpusConfig(**values)


def text_of(plan: Plan) -> Text:
    """Corpus and tokenizer of a plan. CorpusError, TokenizerError or ValueError where there is none."""
    config = config_of(plan)
    found = _tokenizer(config, _stamp(config.name))
    if isinstance(found, Exception):
        raise found
    return Text(corpus_of(plan), found)


def corpus_of(plan: Plan) -> Corpus:
    """The corpus of a plan. CorpusError where there is none."""
    config = config_of(plan)
    found = _corpus(config.name, config.longest, config.seed, _stamp(config.name))
    if isinstance(found, Exception):
        raise found
    return found


def longer_sides(plan: Plan) -> Int[ndarray, "pair"]:
    """Tokens of the longer side of some training pairs, its bos or eos included. Raises as `text_of`."""
    config = config_of(plan)
    return _longer_sides(config, _stamp(config.name))


def stats_of(plan: Plan) -> CorpusStats:
    """All that is to be told of a plan's corpus. Raises as `text_of`."""
    config = config_of(plan)
    return _stats(config, _stamp(config.name))


def steps_an_epoch(plan: Plan) -> float:
    """Optimiser steps in which every training pair is seen once, counted on the first pool of the very stream that a
    run reads. Raises as `text_of`, and ValueError where no pair fits."""
    config = config_of(plan)
    model, train, _ = plan.configs()
    return _steps_an_epoch(config, _stamp(config.name), train.batch_tokens, model.max_length) / train.accumulate


@st.cache_resource(max_entries=12, show_spinner="Reading the corpus")
def _corpus(name: str, longest: int | None, seed: int, stamp: tuple[int, int]) -> Corpus | CorpusError:
    try:
        return loaded(CorpusConfig(name=name, longest=longest, seed=seed))
    except CorpusError as error:  # kept too: finding it again would take as long
        return error


@st.cache_resource(max_entries=24, show_spinner="Learning the tokens of this corpus")
def _tokenizer(config: CorpusConfig, stamp: tuple[int, int]) -> Tokenizer | CorpusError | TokenizerError:
    corpus = _corpus(config.name, config.longest, config.seed, stamp)
    if isinstance(corpus, Exception):
        return corpus
    try:
        return prepared(config)[1]  # where the run finds it again
    except TokenizerError as error:
        return error


@st.cache_data(max_entries=48, show_spinner="Counting tokens")
def _longer_sides(config: CorpusConfig, stamp: tuple[int, int]) -> Int[ndarray, "pair"]:
    corpus, tokenizer = _both(config, stamp)
    pairs = spaced(corpus.train, MEASURED_PAIRS)
    return np.array([1 + max(len(tokenizer.encode(pair.source)), len(tokenizer.encode(pair.target))) for pair in pairs])


@st.cache_data(max_entries=24, show_spinner="Reading through the corpus")
def _stats(config: CorpusConfig, stamp: tuple[int, int]) -> CorpusStats:
    return corpus_stats(*_both(config, stamp))


@st.cache_data(max_entries=48, show_spinner="Counting batches")
def _steps_an_epoch(config: CorpusConfig, stamp: tuple[int, int], batch_tokens: int, max_length: int) -> float:
    corpus, tokenizer = _both(config, stamp)
    stream = BatchStream(corpus.train, tokenizer, batch_tokens=batch_tokens, seed=0, max_length=max_length)
    for batches, (_, after) in enumerate(stream, start=1):
        if (after.epoch, after.pool) != (0, 0):
            pools = 1 if after.epoch else -(-len(corpus.train) // POOL_SIZE)
            return batches * (len(corpus.train) / POOL_SIZE if pools > 1 else 1)
    raise AssertionError("a stream does not end")


def _both(config: CorpusConfig, stamp: tuple[int, int]) -> tuple[Corpus, Tokenizer]:
    corpus = _corpus(config.name, config.longest, config.seed, stamp)
    tokenizer = _tokenizer(config, stamp)
    for found in (corpus, tokenizer):
        if isinstance(found, Exception):
            raise found
    return corpus, tokenizer  # pyright: ignore[reportReturnType]


def _stamp(name: str) -> tuple[int, int]:
    """Changes whenever the file does."""
    if name in CORPORA:
        return 0, 0
    try:
        found = Path(name).stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
