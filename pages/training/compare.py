"""Several runs side by side: the rows of the table, the settings in which they differ, and their curves."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pages.shared.components.run_progress import run_curve
from pages.shared.components.run_table import Column
from pages.shared.exhibit import exhibit
from pages.shared.wording import number
from pages.training import durations, run_status
from transformer.analysis.training.progress import progress_of
from transformer.checkpoints.settings import CheckpointError, Settings, list_checkpoints, read_settings
from transformer.config import CONFIGS, label_of, value_text
from transformer.figures.training.curves import X_TITLES, Against
from transformer.model.families import count_parameters
from transformer.runs.labels import about
from transformer.runs.run_folder import Run
from transformer.views.subjects import Runs
from transformer.views.training.runs import QUANTITIES, SCORES, ComparedRuns, CurvesData

COMPARED = ("validation loss", "training loss", "exact match", "BLEU", "chrF")
"""The quantities that runs are compared by."""
AGAINST: dict[str, Against] = {"step": "step", "seconds": "elapsed_s"}
SCALES = ("log", "linear")
SHOWN_AT_FIRST = 3
_LEFT_OUT = {
    *("model.pad_id", "model.bos_id", "model.eos_id"),
    *("corpus.name", "corpus.vocab_size"),  # a column of its own; model.vocab_size is what it came to
}
_FOLLOWS = {"model.embedding_dropout": "model.dropout"}
"""Settings that are left out where they have the same values as another one."""
PARENT = "started from"


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
    """Returns every run, the newest first, then the shipped models."""
    found = [Entry(run.id, run.folder, run.settings, run, about(run.folder).note) for run in run_status.runs_here()]
    for checkpoint in list_checkpoints():
        if not checkpoint.shipped:
            continue
        try:
            found.append(Entry(checkpoint.name, checkpoint.folder, read_settings(checkpoint.folder), None))
        except CheckpointError:  # a damaged one says so where it is opened
            continue
    return tuple(found)


def table_of(found: Sequence[Entry]) -> tuple[tuple[Column, ...], list[tuple[str, tuple[str, ...]]]]:
    """Returns the columns of the table and a row for each entry: its results, and the settings that differ among runs.

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
        f"{count_parameters(entry.settings.model):,}",
        durations.duration(_step_and_seconds(entry)[1]),
        entry.settings.created[:16].replace("T", " "),
    )


def _step_and_seconds(entry: Entry) -> tuple[float, float]:
    if entry.run is not None:  # after a resume the metrics may reach past the step the run stands at
        return entry.run.status.step, entry.run.status.elapsed_s
    progress = progress_of(entry.folder)
    return progress.last("train", "step") or 0, progress.last("train", "elapsed_s") or 0.0


def last_of(entry: Entry, quantity: str) -> float | None:
    """Returns an entry's last value of a quantity, in the unit of the axis; None where it was not measured."""
    what = QUANTITIES[quantity]
    value = progress_of(entry.folder).last(what.split, what.column)
    if value is None or not math.isfinite(value):
        return None
    return 100 * value if what.percent else value


def quantities_of(shown: Sequence[Entry]) -> tuple[str, ...]:
    """Returns the quantities to compare these by: BLEU and chrF only where one of them was scored so."""
    return tuple(
        name for name in COMPARED if name not in SCORES or any(last_of(entry, name) is not None for entry in shown)
    )


def render_curves(shown: Sequence[Entry], *, quantity: str, against: str, log: bool, key: str = "") -> None:
    """Renders a curve for each entry: drawn in place while one of them grows, else as a figure that can be zoomed."""
    view = ComparedRuns(quantity=quantity, against=AGAINST[against], log=log)
    live = any(entry.active for entry in shown)

    def draw(data: CurvesData) -> None:
        run_curve([view.drawn(data)], x_title=X_TITLES[view.against], x_least=1, key=f"{key}-live")

    exhibit(
        Runs(tuple(entry.folder for entry in shown)),
        view,
        key=key,
        draw=draw if live else None,
        live=live,
    )


def differing(several: Sequence[Settings]) -> tuple[str, ...]:
    """Returns the full names of the settings that are not the same in all of these, in the order of config.py."""
    flat = [_flat(settings) for settings in several]
    names = dict.fromkeys(name for values in flat for name in values)
    found = [name for name in names if len({repr(values.get(name)) for values in flat}) > 1]
    return tuple(
        name
        for name in found
        if name not in _LEFT_OUT
        and not (name in _FOLLOWS and all(values.get(name) == values.get(_FOLLOWS[name]) for values in flat))
    )


def column_title(name: str) -> str:
    """Returns the label of a setting at the head of a column: "heads", "d_model", "CPU threads"."""
    if "." not in name:
        return name
    label = label_of(name)
    return label if label[1:2].isupper() else f"{label[:1].lower()}{label[1:]}"


def cell(settings: Settings, name: str) -> str:
    """Returns the value of a setting, as a cell shows it: "4,000", but a seed counts nothing and stays "4000"."""
    value = _flat(settings).get(name)
    return f"{value:,}" if type(value) is int and not name.endswith(".seed") else value_text(value)


def is_number(several: Sequence[Settings], name: str) -> bool:
    """Tells whether all of these have a number there, or nothing."""
    values = [_flat(settings).get(name) for settings in several]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _flat(settings: Settings) -> dict[str, Any]:
    flat = {f"{kind}.{name}": v for kind in CONFIGS for name, v in asdict(getattr(settings, kind)).items()}
    parent = settings.parent
    return flat | {PARENT: None if parent is None else f"{parent.run}, step {parent.step:,}"}
