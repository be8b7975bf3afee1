"""Several runs beside each other: the rows of the table, and one of their quantities laid over each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import streamlit as st

from pages.common.components.run_curve import Panel, run_curve
from pages.common.pictures import is_dark
from pages.common.training import run_state, timing
from pages.common.training.data import parameter_count, progress_of
from pages.common.wording import number
from transformer import runs
from transformer.figures.curves import EXACT_MATCH_TITLE, LOSS_TITLE, X_TITLES, Against, Curve, overlay_figure
from transformer.runs import Run
from transformer.settings import CheckpointError, Settings, list_checkpoints, read_settings

Quantity = Literal["validation loss", "training loss", "exact match"]
QUANTITIES = get_args(Quantity)
AGAINST: dict[str, Against] = {"step": "step", "seconds": "elapsed_s"}
SCALES = ("log", "linear")
SHOWN_AT_FIRST = 3


@dataclass(frozen=True)
class Entry:
    """A run, or a shipped model, whose training is likewise on record."""

    name: str
    folder: Path
    settings: Settings
    run: Run | None
    """None for a shipped model."""

    @property
    def active(self) -> bool:
        return self.run is not None and self.run.status.active


def entries() -> tuple[Entry, ...]:
    """Every run, the newest first, then the shipped models."""
    found = [Entry(run.id, run.folder, run.settings, run) for run in runs.list_runs()]
    for checkpoint in list_checkpoints():
        if not checkpoint.shipped:
            continue
        try:
            found.append(Entry(checkpoint.name, checkpoint.folder, read_settings(checkpoint.folder), None))
        except CheckpointError:  # a damaged one says so where it is opened
            continue
    return tuple(found)


def row_of(entry: Entry) -> tuple[str, tuple[str, ...]]:
    """The entry's name and its cells in the order of the table's columns."""
    settings, progress = entry.settings, progress_of(entry.folder)
    exact, loss = progress.last("validation", "exact_match"), progress.last("validation", "loss")
    if entry.run is not None:  # after a resume the metrics may reach past the step the run stands at
        step, seconds = entry.run.status.step, entry.run.status.elapsed_s
    else:
        step, seconds = progress.last("train", "step") or 0, progress.last("train", "elapsed_s") or 0.0
    return entry.name, (
        entry.name,
        settings.corpus.name,
        run_state.state_word(entry.run) if entry.run else "shipped",
        f"{step:,.0f}",
        "–" if exact is None else f"{100 * exact:.3g}",
        "–" if loss is None else number(loss),
        f"{parameter_count(settings.model):,}",
        settings.model.positions,
        timing.duration(seconds),
        settings.created[:16].replace("T", " "),
    )


def draw_curves(shown: Sequence[Entry], *, quantity: str, against: str, log: bool, key: str) -> None:
    """One curve an entry. While one of them grows they are drawn in place; else as a figure that can be zoomed."""
    percent = quantity == "exact match"
    curves = [_curve(entry, quantity, AGAINST[against]) for entry in shown]
    title = EXACT_MATCH_TITLE if percent else LOSS_TITLE
    if any(entry.active for entry in shown):
        panel = Panel(title=title, main=curves, percent=percent, log=log, height=320, overlay=True)
        run_curve([panel], x_title=X_TITLES[AGAINST[against]], x_least=1, key=f"{key}-live")
    else:
        figure = overlay_figure(
            curves, title=title, against=AGAINST[against], log=log and not percent, percent=percent, dark=is_dark()
        )
        st.plotly_chart(figure, key=key, theme=None, width="stretch", config={"displayModeBar": False})


def _curve(entry: Entry, quantity: str, against: Against) -> Curve:
    progress = progress_of(entry.folder)
    match quantity:
        case "exact match":
            return progress.curve("validation", "exact_match", entry.name, against)
        case "training loss":
            return progress.curve("train", "loss", entry.name, against)
    return progress.curve("validation", "loss", entry.name, against)
