"""The figures of a plan: the lengths of a corpus's sentences, the learning rate by step, the memory of training."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.training.memory import Memory, memory_of
from transformer.analysis.training.plan_checks import (
    check_file,
    check_lengths,
    check_schedule,
    check_sizes,
    check_splits,
)
from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.cleaning import REASONS
from transformer.data.corpora import CORPORA, load_corpus
from transformer.data.corpus_cache import counted, prepared
from transformer.data.pair_files import read_pairs
from transformer.figures.tables import column_table, matrix_table
from transformer.figures.training.plan import length_bars, length_figure, memory_figure, schedule_figure
from transformer.model.families import count_parameters
from transformer.training.schedule import learning_rate

REPORTED = ("read", "kept", *REASONS)
"""The counts of a file's rows, by their fate."""


@dataclass(frozen=True)
class LengthsData:
    """The lengths of a corpus's sentences in tokens, and the number of its pairs."""

    sides: tuple[str, str]
    """The names of the two languages."""
    labels: tuple[str, ...]
    """The lengths that each bar stands for, as in "3" or "3 to 4"."""
    shares: Float[ndarray, "side bar"]
    """The per cent of the sentences at each bar."""
    means: Float[ndarray, " side"]
    longest: Int[ndarray, " side"]
    splits: tuple[str, ...]
    sizes: Int[ndarray, " split"]
    """The number of pairs in each split."""
    counted: int
    """The number of training pairs whose tokens were counted."""
    rows: Int[ndarray, " reason"]
    """The counts of an uploaded file's rows, as REPORTED names them; empty for a generated corpus."""


@dataclass(frozen=True, kw_only=True)
class SentenceLengths:
    """The lengths of a corpus's sentences."""

    limit: int | None = None
    """The length past which sentences are marked as skipped."""
    name = "sentence-lengths"
    explained = (
        "How long the sentences of this corpus are, in tokens, for both languages. Long ones cost most: attention "
        "compares every token with every other one. Where a length is marked, those beyond it do not fit into the "
        "model and are left out of training."
    )

    def data(self, corpus: CorpusConfig) -> LengthsData:
        """The lengths in tokens, end mark included, of training pairs, and the size of each split."""
        text, stats = prepared(corpus)[0], counted(corpus)
        assert stats.tokens is not None, "counted with a tokenizer"
        sides = stats.tokens.source + 1, stats.tokens.target + 1
        labels, shares = length_bars(*sides)
        report = stats.report
        rows = [] if report is None else [report.read, report.kept, *(report.dropped.get(why, 0) for why in REASONS)]
        return LengthsData(
            sides=(text.source_name, text.target_name),
            labels=labels,
            shares=shares,
            means=np.array([side.mean() for side in sides]),
            longest=np.array([side.max() for side in sides]),
            splits=tuple(stats.sizes),
            sizes=np.array(list(stats.sizes.values())),
            counted=stats.counted,
            rows=np.array(rows, dtype=np.int64),
        )

    def figure(self, data: LengthsData, *, dark: bool = False) -> go.Figure:
        """Two bars a length."""
        return length_figure(data.labels, data.shares, data.sides, limit=self.limit, dark=dark)

    def tables(self, data: LengthsData) -> tuple[DataFrame, ...]:
        """The shares, and the size of each split."""
        return (
            matrix_table("sentences, %", data.shares.T, [f"{label} tokens" for label in data.labels], data.sides),
            column_table("pairs", data.splits, {"pairs": data.sizes}),
        )

    def checks(self, corpus: CorpusConfig, data: LengthsData) -> Iterator[Check]:
        """Tokenizes the sentences again and counts one by one; reads an uploaded file again row by row."""
        _, tokenizer = prepared(corpus)
        text = load_corpus(corpus)
        bars = [dict(zip(data.labels, shares, strict=True)) for shares in data.shares.tolist()]
        yield from check_lengths(text, data.counted, tokenizer, bars, data.means, data.longest)
        sizes = dict(zip(data.splits, data.sizes.tolist(), strict=True))
        pairs = {"train": text.train, "validation": text.validation, **text.held_out}
        again = [len(pairs[split]) for split in data.splits]
        yield agree("Pairs in each split", list(sizes.values()), again, 0, "the corpus made again; pairs counted")
        yield from check_splits(text)
        if corpus.name not in CORPORA:
            file = read_pairs(Path(corpus.name), corpus.columns)
            yield from check_file(file, sizes, dict(zip(REPORTED, data.rows.tolist(), strict=False)))


@dataclass(frozen=True)
class ScheduleData:
    """The learning rate at some steps."""

    steps: Int[ndarray, " point"]
    rates: Float[ndarray, " point"]
    warmup_steps: int


@dataclass(frozen=True, kw_only=True)
class LearningRate:
    """The learning rate from the first step to the last."""

    last: int
    """The last step."""
    points: int = 200
    name = "learning-rate"
    explained = (
        "How large a step the optimizer takes, over the whole training. A warm-up lets it rise, while gradients are "
        "still wild; after that the paper's schedule lets it fall, so that the model can settle (section 5.3)."
    )

    def data(self, model: AnyModelConfig, train: TrainConfig) -> ScheduleData:
        """The schedule at evenly spaced steps."""
        steps = np.unique(np.linspace(1, self.last, self.points).astype(int))
        rates = [
            learning_rate(
                int(step),
                kind=train.schedule,
                peak=train.learning_rate,
                warmup_steps=train.warmup_steps,
                max_steps=train.max_steps,
            )
            for step in steps
        ]
        return ScheduleData(steps, np.array(rates), train.warmup_steps)

    def figure(self, data: ScheduleData, *, dark: bool = False) -> go.Figure:
        """A line, with the end of the warm-up marked."""
        return schedule_figure(data.steps, data.rates, warmup_steps=data.warmup_steps, dark=dark)

    def tables(self, data: ScheduleData) -> tuple[DataFrame, ...]:
        """The rate at each step."""
        rows = [f"step {step}" for step in data.steps]
        return (column_table("learning rate", rows, {"learning rate": data.rates}),)

    def checks(self, model: AnyModelConfig, train: TrainConfig, data: ScheduleData) -> Iterator[Check]:
        """Evaluates the schedule's formula, written as a minimum of two curves."""
        yield check_schedule(data.steps, data.rates, train)
        yield agree("The warm-up ends where it is marked", data.warmup_steps, train.warmup_steps, 0, "the settings")


@dataclass(frozen=True)
class MemoryData:
    """The size of a model and the memory of its training."""

    parameters: int
    memory: Memory


@dataclass(frozen=True, kw_only=True)
class TrainingMemory:
    """The memory that training takes, part by part."""

    width: int
    """The number of tokens of a usual pair's longer side."""
    name = "memory"
    explained = (
        "What training has to keep in memory, part by part: the weights, a gradient for each weight, what the "
        "optimizer remembers of each, and the activations of one batch, which grow with its number of tokens."
    )
    note = "activations are an estimate"

    def data(self, model: AnyModelConfig, train: TrainConfig) -> MemoryData:
        """The parameters, and the bytes of each part."""
        return MemoryData(count_parameters(model), memory_of(model, train.batch_tokens, self.width, train.optimizer))

    def figure(self, data: MemoryData, *, dark: bool = False) -> go.Figure:
        """A bar a part."""
        return memory_figure(self._parts(data.memory), dark=dark)

    def tables(self, data: MemoryData) -> tuple[DataFrame, ...]:
        """The parameters, and the bytes of each part."""
        parts = self._parts(data.memory)
        return (
            column_table("bytes", list(parts), {"bytes": np.array([*parts.values()])}),
            matrix_table("parameters", np.array([[data.parameters]]), ["model"], ["parameters"]),
        )

    def checks(self, model: AnyModelConfig, train: TrainConfig, data: MemoryData) -> Iterator[Check]:
        """Builds a model of these settings and measures it."""
        yield from check_sizes(model, train, data.parameters, data.memory)

    def _parts(self, memory: Memory) -> dict[str, int]:
        return {
            "weights": memory.weights,
            "gradients": memory.gradients,
            "the optimiser's means": memory.optimizer,
            "activations": memory.activations,
        }
