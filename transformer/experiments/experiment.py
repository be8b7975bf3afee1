"""An experiment as data: its question, the paper's claim, its cells and budgets, and the rule by which it is judged.

What is measured in a cell and how the numbers are judged are functions of the experiment's own module in `paper/`.
Nothing here knows any of them.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from transformer.experiments.outcome import Verdict
from transformer.experiments.results import Cell, Level, Results

Bounds = tuple[float, float, float]
"""An estimate with the low and high end of its interval."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """Something that is varied."""

    name: str
    label: str
    explained: str
    """Its meaning, in half a sentence."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Something that is measured in each cell with each seed."""

    name: str
    label: str
    """The title of its axis, with the unit."""
    explained: str
    """Its meaning, in half a sentence."""
    log: bool = False
    """True if a logarithmic axis suits it."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A choice of levels, seeds and size: a small budget answers sooner and with less certainty."""

    name: str
    says: str
    """What it covers, in half a sentence."""
    levels: Mapping[str, Sequence[Level]]
    """The levels of each factor; the cells are all their combinations."""
    seeds: Sequence[int]
    size: int = 1
    """The steps of a training or the repeats of a measurement, as the experiment takes it."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart of a metric: over one factor, a line for each level of another."""

    title: str
    metric: str
    x: str
    by: str
    log_x: bool = False


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment that a person can run; the first of its budgets is the one of the shipped numbers."""

    name: str
    title: str
    question: str
    claim: str
    """What the paper says."""
    section: str
    """Where it says so."""
    setting: str
    """What is measured here, and where it differs from the paper."""
    factors: Sequence[Factor]
    metrics: Sequence[Metric]
    budgets: Sequence[Budget]
    charts: Sequence[Chart]
    rule: str
    """How the numbers are judged."""
    change_of_mind: str
    """What would change the verdict."""
    measure: Callable[[Cell, int, int], Mapping[str, float]] = field(repr=False)
    """Measures one cell with a seed at a budget's size."""
    judge: Callable[[Results], Verdict] = field(repr=False)
    """Judges results that hold at least one seed in every cell; `verdict` asks it."""
    again: Callable[[Sequence[Mapping]], Mapping[str, Bounds]] = field(repr=False)
    """Computes each finding again from the rows of the file, by other code: what "Prove it" compares with."""
    replicate: str = "seed"
    """What is repeated in each cell."""
    skips: Callable[[Cell], bool] = field(default=lambda cell: False, repr=False)
    """True for combinations of levels that are left out."""

    def budget(self, name: str = "") -> Budget:
        """Returns the budget of this name, the first one for an empty name; ValueError where there is none."""
        for budget in self.budgets:
            if name in ("", budget.name):
                return budget
        known = ", ".join(budget.name for budget in self.budgets)
        raise ValueError(f"{self.name} has no budget {name!r}; choose one of: {known}")

    def plan(self, budget: Budget) -> tuple[tuple[Cell, int], ...]:
        """Returns the cells with their seeds: all with one seed, then with the next, so that a stop leaves pairs."""
        names = [factor.name for factor in self.factors]
        cells = [
            dict(zip(names, levels, strict=True))
            for levels in itertools.product(*(budget.levels[name] for name in names))
        ]
        kept = [cell for cell in cells if not self.skips(cell)]
        return tuple((cell, seed) for seed in budget.seeds for cell in kept)

    def verdict(self, results: Results) -> Verdict:
        """Judges results; ValueError where not even one seed is measured in every cell."""
        budget = self.budget(results.budget)
        total = len(self.plan(budget))
        if len(results.rows) < total // len(budget.seeds):
            raise ValueError(f"{len(results.rows):,} of {total:,} measurements are too few for a verdict")
        return self.judge(results)

    def metric(self, name: str) -> Metric:
        """Returns the metric of this name."""
        return next(metric for metric in self.metrics if metric.name == name)

    def factor(self, name: str) -> Factor:
        """Returns the factor of this name."""
        return next(factor for factor in self.factors if factor.name == name)
