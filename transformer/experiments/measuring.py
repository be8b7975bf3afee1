"""Runs an experiment: measures its cells one after another and saves each row, so that a stopped one goes on later."""

import datetime
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from transformer.experiments.experiment import Budget, Experiment
from transformer.experiments.results import ExperimentError, Results, Row, read_results, write_results


@dataclass(frozen=True)
class Measured:
    """The progress of an experiment."""

    done: int
    total: int
    row: Row


def run_experiment(
    experiment: Experiment,
    budget: Budget,
    path: Path,
    *,
    command: str = "",
    on_row: Callable[[Measured], object] = lambda measured: None,
) -> Results:
    """Measures what the file does not hold yet, on one thread, and returns all; what `on_row` raises ends it early.

    Every cell meets the same seeds; a seed decides data and weights alike.
    """
    results = _begun(experiment, budget, path, command)
    plan = experiment.plan(budget)
    held = {(tuple(row.cell.items()), row.seed): row for row in results.rows}
    rows = [held[key] for cell, seed in plan if (key := (tuple(cell.items()), seed)) in held]
    torch.set_num_threads(1)
    for cell, seed in plan:
        if (tuple(cell.items()), seed) in held:
            continue
        begun = time.monotonic()
        values = experiment.measure(cell, seed, budget.size)
        row = Row(cell=cell, seed=seed, values=dict(values), elapsed_s=time.monotonic() - begun)
        rows.append(row)
        write_results(path, replace(results, rows=tuple(rows)))
        on_row(Measured(len(rows), len(plan), row))
    return read_results(path)


def _begun(experiment: Experiment, budget: Budget, path: Path, command: str) -> Results:
    """Returns the results to go on with; new ones where there are none, or they are of other code or another budget."""
    fresh = Results(
        experiment=experiment.name,
        budget=budget.name,
        command=command,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=f"{platform.machine()}, {os.cpu_count()} CPUs, one thread",
        versions={"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    )
    try:
        found = read_results(path)
    except ExperimentError:
        return fresh
    same = (found.experiment, found.budget, found.versions) == (fresh.experiment, fresh.budget, fresh.versions)
    return found if same else fresh
