"""How long an experiment takes, from the seconds of the shipped measurements."""

from collections.abc import Sequence
from statistics import fmean

from transformer.experiments.experiment import Budget, Experiment
from transformer.experiments.results import ExperimentError, load_results

START_S = 4.0
"""Seconds until a process of its own has imported PyTorch and begins."""


def estimated_s(experiment: Experiment, budget: Budget) -> float:
    """Returns the seconds that a budget takes on the test machine, from its own cells in the shipped numbers."""
    shipped = load_results(experiment.name)
    experiment.check(shipped)
    if not shipped.rows:
        raise ExperimentError(f"there are no shipped measurements of {experiment.name}")
    full = experiment.budget(shipped.budget)
    if not budget.size:  # nothing is trained: a cell takes as long as the shipped cells without a training
        return START_S + min(row.elapsed_s for row in shipped.rows) * len(experiment.plan(budget))
    cells: dict[tuple, list[float]] = {}
    for row in shipped.rows:
        cells.setdefault(tuple(row.cell.items()), []).append(row.elapsed_s)
    usual = fmean(row.elapsed_s for row in shipped.rows)
    each = (fmean(cells.get(tuple(cell.items()), [usual])) for cell, _ in experiment.plan(budget))
    return START_S + sum(each) * budget.size / full.size


def estimated_for_all_s(experiments: Sequence[Experiment], budget: str = "") -> float:
    """Returns the seconds that several experiments take one after another."""
    return sum(estimated_s(experiment, experiment.budget(budget)) for experiment in experiments)
