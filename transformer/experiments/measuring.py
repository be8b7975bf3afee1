"""Runs an experiment: measures its cells one after another and saves each row, so that a stopped one goes on later."""

import datetime
import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from transformer.experiments.experiment import Budget, Experiment
from transformer.experiments.results import ExperimentError, Results, Row, read_results, write_results
from transformer.experiments.training import kept_as_runs
from transformer.files import runs_folder
from transformer.locks import take


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
    keep_runs: bool = False,
    on_row: Callable[[Measured], object] = lambda measured: None,
) -> Results:
    """Measures what the file does not hold yet, on one thread, and returns all; what `on_row` raises ends it early.

    Every cell meets the same seeds; a seed decides data and weights alike. With `keep_runs` the trainings of the first
    seed become ordinary runs, one for each cell that trains. ExperimentError where another process is at it.
    """
    with _only_one(experiment, path):
        _measure(experiment, budget, path, command, keep_runs=keep_runs, on_row=on_row)
    return read_results(path)


@contextmanager
def _only_one(experiment: Experiment, path: Path) -> Iterator[None]:
    """A block in which no other process measures into the same file: two would overwrite each other's rows."""
    folder = runs_folder() / ".experiments" / ".locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = take(folder / hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32])
    except OSError as error:
        raise ExperimentError(f"{folder} cannot be written: {error.strerror or error}") from error
    if lock is None:
        raise ExperimentError(f"{experiment.name} is being measured by another process already: wait until it ends")
    try:
        yield
    finally:
        os.close(lock)


def _measure(
    experiment: Experiment,
    budget: Budget,
    path: Path,
    command: str,
    *,
    keep_runs: bool,
    on_row: Callable[[Measured], object],
) -> None:
    results = _begun(experiment, budget, path, command)
    wanted = {(tuple(cell.items()), seed): (cell, seed) for cell, seed in experiment.plan(budget)}
    held = {key: row for row in results.rows if (key := (tuple(row.cell.items()), row.seed)) in wanted}
    torch.set_num_threads(1)
    for key, (cell, seed) in wanted.items():
        if key in held:
            continue
        begun = time.monotonic()
        with kept_as_runs(experiment.name, results.command) if keep_runs and seed == budget.seeds[0] else nullcontext():
            values = experiment.measure(cell, seed, budget.size)
        held[key] = Row(cell=cell, seed=seed, values=dict(values), elapsed_s=time.monotonic() - begun)
        write_results(path, replace(results, rows=tuple(held[each] for each in wanted if each in held)))
        on_row(Measured(len(held), len(wanted), held[key]))


def _begun(experiment: Experiment, budget: Budget, path: Path, command: str) -> Results:
    """Returns the results to go on with; new ones where there are none, or they are of other code or another budget."""
    fresh = Results(
        experiment=experiment.name,
        budget=budget.name,
        command=command,
        commit=current_commit(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=f"{platform.machine()}, {os.cpu_count()} CPUs, one thread",
        versions={"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    )
    try:
        found = read_results(path)
    except ExperimentError:
        return fresh
    same = (found.experiment, found.budget, found.versions) == (fresh.experiment, fresh.budget, fresh.versions)
    if not same:
        return fresh
    if found.commit.endswith(fresh.commit):
        return found
    return replace(found, commit=f"{found.commit}, {fresh.commit}".removeprefix(", "))  # what is added is of other code


def current_commit() -> str:
    """Returns the commit of the code, ending in "-dirty" where files differ from it; empty where git knows none."""
    command = ("git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*")
    try:
        asked = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
