"""An experiment as data: its question, the paper's claim, its cells and budgets, and the rule by which it is judged.

What is measured in a cell and how the numbers are judged are functions of the experiment's own module in `paper/`.
Nothing here knows any of them.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from transformer.experiments.outcome import Verdict
from transformer.experiments.recount import best_mean
from transformer.experiments.results import Cell, ExperimentError, Level, Results

_AGAIN = "run it again"


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
class Competence:
    """A level that the arms of the deciding finding must reach: models that have not learned tell nothing."""

    metric: str
    least: float
    arms: Mapping[str, Cell]
    best_of: str = ""
    """A factor that the arms leave open: the level counts at which an arm is best."""

    def short_of(self, results: Results) -> dict[str, float]:
        """Returns the arms whose mean over seeds falls short, with it; those that were not measured are left out."""
        found: dict[str, float] = {}
        for name, arm in self.arms.items():
            cells = [arm | {self.best_of: at} for at in results.levels(self.best_of)] if self.best_of else [arm]
            means = [results.mean(self.metric, **cell) for cell in cells if results.by_seed(self.metric, **cell)]
            if means and max(means) < self.least:
                found[name] = max(means)
        return found

    def again(self, rows: Sequence[Mapping]) -> dict[str, float]:
        """Computes the same from the rows of the file: see `recount`."""
        best = {name: best_mean(rows, self.metric, self.best_of, **arm) for name, arm in self.arms.items()}
        return {name: mean for name, mean in best.items() if mean < self.least}


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
    again: Callable[[Sequence[Mapping]], Mapping[str, Sequence[float]]] = field(repr=False)
    """Reads the values that each finding is the mean of from the rows of the file, by other code, for "Prove it"."""
    replicate: str = "seed"
    """What is repeated in each cell."""
    skips: Callable[[Cell], bool] = field(default=lambda cell: False, repr=False)
    """True for combinations of levels that are left out."""
    competence: Competence | None = None
    objections: Mapping[str, str] = field(default_factory=dict)
    """Answers to critics, by what they would say."""
    named_first: bool = False
    """True if the finding that decides was named before the seeds of the shipped numbers were measured."""
    shared: str = ""
    """The factor for all of whose levels one training does, in the time of the first; empty where each cell has one."""

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
        """Judges results; ExperimentError where they are not this experiment's, or not even one seed is measured in
        every cell, or the numbers allow no judgement."""
        self.check(results)
        plan = self.plan(self.budget(results.budget))
        if {tuple(cell.items()) for cell, _ in plan} - {tuple(row.cell.items()) for row in results.rows}:
            raise ExperimentError(f"{len(results.rows):,} of {len(plan):,} measurements are too few for a verdict")
        try:
            return replace(self.judge(results), unlearned=self.competence.short_of(results) if self.competence else {})
        except (ArithmeticError, LookupError, TypeError, ValueError, np.linalg.LinAlgError) as error:
            raise ExperimentError(f"the measurements of {self.name} allow no verdict ({error}): {_AGAIN}") from error

    def check(self, results: Results) -> None:
        """ExperimentError where results hold anything but measurements of this experiment's cells, each once."""
        try:
            plan = {(tuple(cell.items()), seed) for cell, seed in self.plan(self.budget(results.budget))}
        except ValueError as error:
            raise ExperimentError(f"{error}; {_AGAIN}") from error
        held = [(tuple(row.cell.items()), row.seed) for row in results.rows]
        if results.experiment != self.name or not plan.issuperset(held):
            raise ExperimentError(f"the results of {self.name} hold measurements that are not part of it: {_AGAIN}")
        if len(set(held)) < len(held):
            raise ExperimentError(f"the results of {self.name} hold a measurement twice: {_AGAIN}")
        above_0 = {metric.name: metric.log for metric in self.metrics}
        for row in results.rows:
            if unknown := row.values.keys() - above_0.keys():
                raise ExperimentError(f"{self.name} does not measure {min(unknown)!r}: {_AGAIN}")
            if wrong := [name for name, value in row.values.items() if above_0[name] and value <= 0]:
                raise ExperimentError(f"a measurement of {wrong[0]} is {row.values[wrong[0]]:g}, not above 0: {_AGAIN}")

    def metric(self, name: str) -> Metric:
        """Returns the metric of this name."""
        return next(metric for metric in self.metrics if metric.name == name)

    def factor(self, name: str) -> Factor:
        """Returns the factor of this name."""
        return next(factor for factor in self.factors if factor.name == name)
