"""Several runs beside each other: the rows of the table, and one of their quantities laid over each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from pages.shared.components.run_curve import Panel, run_curve
from pages.shared.components.run_table import Column
from pages.shared.context import is_dark
from pages.shared.wording import number
from pages.training import durations, run_status
from pages.training.data import progress_of
from pages.training.differences import cell, column_title, differing, is_number
from pages.training.export_run import take_curves_away
from pages.training.run_checks import check_curves, drawn, drawn_in_place
from transformer.checkpoints.settings import CheckpointError, Settings, list_checkpoints, read_settings
from transformer.figures.training.curves import EXACT_MATCH_TITLE, LOSS_TITLE, X_TITLES, Against, Curve, overlay_figure
from transformer.model.transformer import parameter_count
from transformer.runs import run_folder
from transformer.runs.labels import about
from transformer.runs.run_folder import Run


@dataclass(frozen=True)
class Quantity:
    """What runs are compared by."""

    split: str
    column: str
    title: str
    """Of the axis."""
    percent: bool = False
    """Kept as 0..1, shown as 0..100."""
    logarithmic: bool = False
    """Whether a logarithmic scale suits it."""


QUANTITIES = {
    "validation loss": Quantity("validation", "loss", LOSS_TITLE, logarithmic=True),
    "training loss": Quantity("train", "loss", LOSS_TITLE, logarithmic=True),
    "exact match": Quantity("validation", "exact_match", EXACT_MATCH_TITLE, percent=True),
    "BLEU": Quantity("validation", "bleu", "BLEU"),
    "chrF": Quantity("validation", "chrf", "chrF"),
}
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
    note: str = ""

    @property
    def active(self) -> bool:
        return self.run is not None and self.run.status.active


def entries() -> tuple[Entry, ...]:
    """Every run, the newest first, then the shipped models."""
    found = [Entry(run.id, run.folder, run.settings, run, about(run.folder).note) for run in run_folder.list_runs()]
    for checkpoint in list_checkpoints():
        if not checkpoint.shipped:
            continue
        try:
            found.append(Entry(checkpoint.name, checkpoint.folder, read_settings(checkpoint.folder), None))
        except CheckpointError:  # a damaged one says so where it is opened
            continue
    return tuple(found)


def table_of(found: Sequence[Entry]) -> tuple[tuple[Column, ...], list[tuple[str, tuple[str, ...]]]]:
    """The columns of the table and a row for each entry: what it reached, and the settings that differ among the runs.

    Shipped models stand beside the runs, but only where there are no two runs do they decide what differs.
    """
    own = [entry.settings for entry in found if entry.run is not None]
    compared = own if len(own) > 1 else [entry.settings for entry in found]
    names = differing(compared)
    noted = any(entry.note for entry in found)
    columns = (
        *_REACHED,
        *((column_title(name), is_number(compared, name)) for name in names),
        *_WHEN,
        *([("note", False)] if noted else []),
    )
    rows = [
        (
            entry.name,
            (
                *_reached(entry),
                *(cell(entry.settings, name) for name in names),
                *_when(entry),
                *([" ".join(entry.note.split())] if noted else []),
            ),
        )
        for entry in found
    ]
    return columns, rows


_REACHED: tuple[Column, ...] = (
    *(("run", False), ("corpus", False), ("state", False), ("step", True)),
    *(("exact match, %", True), ("validation loss", True)),
)
_WHEN: tuple[Column, ...] = (("parameters", True), ("time", True), ("created (UTC)", False))


def _reached(entry: Entry) -> tuple[str, ...]:
    exact, loss = last_of(entry, "exact match"), last_of(entry, "validation loss")
    return (
        entry.name,
        Path(entry.settings.corpus.name).name,
        run_status.state_word(entry.run) if entry.run else "shipped",
        f"{_step_and_seconds(entry)[0]:,.0f}",
        "–" if exact is None else f"{exact:.3g}",
        "–" if loss is None else number(loss),
    )


def _when(entry: Entry) -> tuple[str, ...]:
    return (
        f"{parameter_count(entry.settings.model):,}",
        durations.duration(_step_and_seconds(entry)[1]),
        entry.settings.created[:16].replace("T", " "),
    )


def _step_and_seconds(entry: Entry) -> tuple[float, float]:
    if entry.run is not None:  # after a resume the metrics may reach past the step the run stands at
        return entry.run.status.step, entry.run.status.elapsed_s
    progress = progress_of(entry.folder)
    return progress.last("train", "step") or 0, progress.last("train", "elapsed_s") or 0.0


def last_of(entry: Entry, quantity: str) -> float | None:
    """What an entry reached, in the unit of the axis; None where it was not measured."""
    what = QUANTITIES[quantity]
    value = progress_of(entry.folder).last(what.split, what.column)
    if value is None or not math.isfinite(value):
        return None
    return 100 * value if what.percent else value


def quantities_of(shown: Sequence[Entry]) -> tuple[str, ...]:
    """What these can be compared by: BLEU and chrF only where one of them was scored so."""
    return tuple(
        name
        for name in QUANTITIES
        if name not in ("BLEU", "chrF") or any(last_of(entry, name) is not None for entry in shown)
    )


def draw_curves(shown: Sequence[Entry], *, quantity: str, against: str, log: bool, key: str) -> None:
    """One curve an entry. While one of them grows they are drawn in place; else as a figure that can be zoomed."""
    what = QUANTITIES[quantity]
    log = log and what.logarithmic
    curves = [progress_of(entry.folder).curve(what.split, what.column, entry.name, AGAINST[against]) for entry in shown]
    places, factor = [(entry.folder, what.split, what.column) for entry in shown], 100 if what.percent else 1
    if any(entry.active for entry in shown):
        panel = Panel(title=what.title, main=curves, percent=what.percent, log=log, height=320, overlay=True)
        run_curve([panel], x_title=X_TITLES[AGAINST[against]], x_least=1, key=f"{key}-live")
        lines = [
            drawn_in_place(*place, curve, percent=what.percent, against=AGAINST[against])
            for place, curve in zip(places, curves, strict=True)
        ]
    else:
        figure = overlay_figure(
            curves, title=what.title, against=AGAINST[against], log=log, percent=what.percent, dark=is_dark()
        )
        st.plotly_chart(figure, key=key, theme=None, width="stretch", config={"displayModeBar": False})
        lines = [
            drawn(*place, on_axis(curve, what.percent), factor=factor, against=AGAINST[against])
            for place, curve in zip(places, curves, strict=True)
        ]
    with st.container(horizontal=True, gap="small"):
        check_curves(lines, key=f"proof-{key}", active=any(entry.active for entry in shown))
        take_curves_away(
            curves,
            what.split,
            what.column,
            title=what.title,
            against=AGAINST[against],
            log=log,
            percent=what.percent,
            key=f"take-{key}",
        )


def on_axis(curve: Curve, percent: bool) -> Curve:
    """The curve in the unit of its axis, as the figure draws it."""
    return Curve(curve.name, curve.x, curve.y * 100) if percent else curve
