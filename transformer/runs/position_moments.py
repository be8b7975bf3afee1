"""Reads a model's learned position table at any moment that was kept: before training, at a snapshot, trained."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.positions.tables import initial_model, model_table, untouched_rows
from transformer.checkpoints.position_history import read_history, read_tables
from transformer.checkpoints.store import Checkpoint
from transformer.model.taps import Stack
from transformer.runs.run_folder import snapshots
from transformer.runs.status import RunError

Rows = Float[ndarray, "position d_model"]


@dataclass(frozen=True)
class LearnedTable:
    """A learned table at one moment of its training."""

    stack: Stack
    moment: str
    """"start", "trained", or the step of a snapshot."""
    rows: Rows
    trained: int
    """Rows before the first one that training never reached."""
    steps: tuple[int, ...]
    """Steps at which it was kept."""


def table_at_start(checkpoint: Checkpoint, stack: Stack) -> Rows:
    """Returns the table before training, made again from the seed; ValueError where positions are not learned."""
    positions = getattr(checkpoint.settings.model, "positions", "")  # models of other families have none
    if positions != "learned":
        raise ValueError(f"the positions of {checkpoint.name} are not learned: {positions or 'it has none'}")
    found = model_table(initial_model(checkpoint.model, checkpoint.settings.train.seed), stack)
    assert found is not None, "the model's positions are learned"
    return found


def learned_table(
    checkpoint: Checkpoint, stack: Stack = "encoder", moment: str = "trained", *, start: Rows | None = None
) -> LearnedTable:
    """Returns the table at a moment: "start", "trained", or the step of a snapshot; an unknown step means "trained".

    `start` saves the time for `table_at_start`. ValueError where positions are not learned.
    """
    start = table_at_start(checkpoint, stack) if start is None else start
    end = model_table(checkpoint.model, stack)
    assert end is not None, "the model's positions are learned"
    fresh = untouched_rows(end, start)
    steps, found = _kept(checkpoint, stack, int(moment) if moment.isdecimal() else None, end)
    trained = int(fresh[0]) if len(fresh) else len(end)
    if moment == "start":
        return LearnedTable(stack, "start", start, trained, steps)
    if found is None:
        return LearnedTable(stack, "trained", end, trained, steps)
    return LearnedTable(stack, moment, found, trained, steps)


def _kept(checkpoint: Checkpoint, stack: Stack, step: int | None, end: Rows) -> tuple[tuple[int, ...], Rows | None]:
    """Returns the steps at which the table was kept, and the table at this step."""
    try:
        files = snapshots(checkpoint.folder.name)
    except RunError:  # a shipped model keeps the tables alone
        files = {}
    if files:
        tables = read_tables(files[step]) if step in files else None
        fits = tables is not None and tables[stack].shape == end.shape
        return tuple(files), np.asarray(tables[stack]) if fits and tables is not None else None
    history = read_history(checkpoint.folder)
    if history is None or history.tables[stack].shape[2] != end.shape[1]:  # of another model
        return (), None
    return history.steps, history.at(step, stack, end) if step in history.steps else None
