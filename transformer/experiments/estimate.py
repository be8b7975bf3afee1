"""How long an experiment takes, from the seconds of the shipped measurements."""

from collections.abc import Sequence
from statistics import fmean

from transformer.experiments.experiment import Budget, Experiment
from transformer.experiments.results import Cell, ExperimentError, Results, load_results

START_S = 4.0
"""Seconds until a process of its own has imported PyTorch and begins."""


def estimated_s(experiment: Experiment, budget: Budget) -> float:
    """Returns the seconds that a budget takes on the test machine, from its own cells in the shipped numbers."""
    shipped = load_results(experiment.name)
    experiment.check(shipped)
    if not shipped.rows:
        raise ExperimentError(f"there are no shipped measurements of {experiment.name}")
    full = experiment.budget(shipped.budget)
    if experiment.shared:
        return START_S + _shared_s(experiment, budget, shipped, budget.size / full.size)
    cells: dict[tuple, list[float]] = {}
    for row in shipped.rows:
        cells.setdefault(tuple(row.cell.items()), []).append(row.elapsed_s)
    usual = fmean(row.elapsed_s for row in shipped.rows)
    each = (fmean(cells.get(tuple(cell.items()), [usual])) for cell, _ in experiment.plan(budget))
    return START_S + sum(each) * budget.size / full.size


def _shared_s(experiment: Experiment, budget: Budget, shipped: Results, size: float) -> float:
    """Returns the seconds of a budget whose trainings serve all levels of a factor, of which it may leave some out.

    A training is what the slowest cell takes longer than the others of the same training; `size` scales it alone. One
    that is not among the shipped takes as long as they do for each of its steps.
    """
    trainings: dict[tuple, list[float]] = {}
    for row in shipped.rows:
        trainings.setdefault((*_training(experiment, row.cell), row.seed), []).append(row.elapsed_s)
    by_kind: dict[tuple, list[float]] = {}
    quick = []
    for (*kind, _), seconds in trainings.items():
        *others, slowest = sorted(seconds)
        quick += others
        by_kind.setdefault(tuple(kind), []).append(slowest - (fmean(others) if others else 0.0))
    usual = fmean(seconds / _steps(kind) for kind, each in by_kind.items() for seconds in each)
    plan = experiment.plan(budget)
    wanted = {(_training(experiment, cell), seed) for cell, seed in plan}
    trained = sum(fmean(by_kind.get(kind, [usual * _steps(kind)])) for kind, _ in wanted)
    return trained * size + len(plan) * (fmean(quick) if quick else 0.0)


def _training(experiment: Experiment, cell: Cell) -> tuple:
    """Returns the factors and levels that make a training: all but that of the shared factor."""
    return tuple(item for item in cell.items() if item[0] != experiment.shared)


def _steps(training: tuple) -> float:
    """Returns the steps of a training, or 1 where they are no factor: all trainings are then of equal length."""
    return float(dict(training).get("steps", 1))


def estimated_for_all_s(experiments: Sequence[Experiment], budget: str = "") -> float:
    """Returns the seconds that several experiments take one after another."""
    return sum(estimated_s(experiment, experiment.budget(budget)) for experiment in experiments)
