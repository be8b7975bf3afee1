"""The checks of what is said of a plan: the corpus counted again, a model of its sizes built and measured."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from pages.shared.checks import badge
from pages.train.costs import Costs
from pages.train.previews import config_of, text_of
from pages.training.plans import Plan
from pages.training.run_checks import held
from transformer.analysis.checks import Check, agree
from transformer.analysis.training.plan_checks import (
    check_file,
    check_lengths,
    check_schedule,
    check_sizes,
    check_splits,
)
from transformer.config import TrainConfig
from transformer.data.corpora import CORPORA
from transformer.data.statistics import CorpusStats
from transformer.model.transformer import Transformer

LARGEST = 20_000_000
"""Parameters of a model that is built for a check; a larger one would take seconds and gigabytes."""


def check_corpus(plan: Plan, stats: CorpusStats, figure: go.Figure) -> None:
    """Of the corpus: the bars as they are drawn, the splits, and the rows of a file, counted again."""

    def run() -> Iterable[Check]:
        text = text_of(plan)
        drawn: Any = figure.data
        bars = [dict(zip(map(str, trace.customdata), map(float, trace.y), strict=True)) for trace in drawn]
        yield from check_lengths(text.corpus, stats, text.tokenizer, bars)
        yield from check_splits(text.corpus)
        if (name := config_of(plan).name) not in CORPORA:
            yield from check_file(Path(name), stats)

    badge(held(run, "proof-corpus", (config_of(plan), stats.sizes)), key="proof-corpus")


def check_costs(plan: Plan, found: Costs) -> None:
    """Of parameters and memory: those of a real model of these settings after a real step of Adam."""

    def run() -> Iterable[Check]:
        model = replace(plan.configs()[0], vocab_size=text_of(plan).tokenizer.vocab_size)
        if found.parameters > LARGEST:
            again = [4 * found.parameters, 4 * found.parameters, 8 * found.parameters]
            shown = [found.memory.weights, found.memory.gradients, found.memory.optimizer]
            how = f"4 bytes a number; models over {LARGEST:,} parameters are not built for a check"
            yield agree("Weights, gradients and Adam's means", shown, again, 0, how)
            return
        needed = found.memory
        yield from check_sizes(
            Transformer(model),
            parameters=found.parameters,
            weights=needed.weights,
            gradients=needed.gradients,
            optimizer=needed.optimizer,
            width=min(8, model.max_length),
        )

    badge(held(run, "proof-costs", (plan, found.parameters)), key="proof-costs")


def check_course(steps: Int[ndarray, "point"], rates: Float[ndarray, "point"], train: TrainConfig, *, key: str) -> None:
    """Of the course of the learning rate."""
    badge(lambda: (check_schedule(np.asarray(steps), np.asarray(rates), train),), key=key)
