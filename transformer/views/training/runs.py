"""The figures of runs: the curves of one, one quantity of several, and what a sweep over a setting found."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.training import run_checks
from transformer.analysis.training.progress import Progress, progress_of
from transformer.analysis.training.run_checks import check_last, check_points, run_log_rows
from transformer.checkpoints.settings import CONFIG_FILE, CheckpointError, Settings, read_settings
from transformer.checkpoints.store import load_checkpoint
from transformer.config import label_of, value_text
from transformer.data.corpus_snapshot import load_own
from transformer.data.unpacking import CorpusError
from transformer.figures.tables import column_table
from transformer.figures.training.curves import (
    EXACT_MATCH_TITLE,
    LOSS_TITLE,
    Against,
    Curve,
    Panel,
    overlay_figure,
    panels_figure,
)
from transformer.figures.training.sweeps import Mark, sweep_figure
from transformer.runs.kept_weights import evaluated_weights
from transformer.runs.status import STATUS_FILE, read_status

_LOSS = r"\mathrm{loss} = -\frac{1}{n} \sum_{t=1}^{n} \log P(y_t \mid y_{<t}, \text{source})"


@dataclass(frozen=True)
class Quantity:
    """A column of a run's metrics, and its axis."""

    split: str
    column: str
    title: str
    """The title of the axis."""
    percent: bool = False
    """True if it is kept as 0..1 and shown as 0..100."""
    log: bool = False
    """True if a logarithmic scale suits it."""
    range: tuple[float, float] | None = None
    """The ends of a fixed axis."""


QUANTITIES = {
    "training loss": Quantity("train", "loss", LOSS_TITLE, log=True),
    "validation loss": Quantity("validation", "loss", LOSS_TITLE, log=True),
    "exact match": Quantity("validation", "exact_match", EXACT_MATCH_TITLE, percent=True),
    "perplexity": Quantity("validation", "perplexity", "perplexity, of validation loss, not smoothed", log=True),
    "BLEU": Quantity("validation", "bleu", "BLEU, 0 to 100", range=(0.0, 100.0)),
    "chrF": Quantity("validation", "chrf", "chrF, 0 to 100", range=(0.0, 100.0)),
    "learning rate": Quantity("train", "learning_rate", "learning rate"),
    "gradient norm": Quantity("train", "gradient_norm", "gradient norm, before clipping", log=True),
    "tokens/s": Quantity("train", "tokens_per_s", "target tokens per second"),
}
SCORES = ("BLEU", "chrF")
"""Quantities that some corpora have no use for."""
REACHED = ("exact match", "validation loss")
"""The quantities that every table of runs has."""
PANELS = {"loss": ("training loss", "validation loss")} | {
    name: (name,) for name in QUANTITIES if not name.endswith(" loss")
}
"""The quantities in each panel of a run's curves; the first of several is drawn thin."""
_LOW, _TALL = 90, 190


@dataclass(frozen=True)
class CurvesData:
    """The curves of one run or of several."""

    curves: tuple[Curve, ...]


@dataclass(frozen=True, kw_only=True)
class RunCurves:
    """The curves of one run over its steps, one panel below the other."""

    panels: tuple[str, ...] = ("loss", "exact match")
    """The names of panels, as PANELS has them."""

    explained = (
        "A step changes the weights a little after one batch. The loss is how surprised the model is on average by "
        "each right token, in nats; 0 would be certainty. Validation loss and exact match, the share of outputs with "
        "every token right, are measured on pairs that are never trained on. If only the training loss goes on "
        "falling, the model is memorising its pairs."
    )
    equation = _LOSS

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        return "-".join(panel.replace(" ", "-").replace("/", "-per-") for panel in self.panels)

    def data(self, runs: Sequence[Path]) -> CurvesData:
        """Every point of every curve, in the order of the panels."""
        settings, progress = read_settings(runs[0]), progress_of(runs[0])
        return CurvesData(tuple(_named(settings, progress, quantity) for quantity in self._quantities))

    def drawn(self, data: CurvesData) -> list[Panel]:
        """The panels, each with its curves."""
        left, panels = iter(data.curves), []
        for name in self.panels:
            *thin, main = [next(left) for _ in PANELS[name]]
            what = QUANTITIES[PANELS[name][-1]]
            height = _TALL if thin else _LOW
            panels.append(
                Panel(
                    title=what.title,
                    thin=thin,
                    main=[main],
                    percent=what.percent,
                    range=what.range,
                    log=what.log,
                    height=height,
                )
            )
        return panels

    def figure(self, data: CurvesData, *, dark: bool = False) -> go.Figure:
        """The panels over one axis of steps."""
        return panels_figure(self.drawn(data), dark=dark)

    def tables(self, data: CurvesData) -> tuple[DataFrame, ...]:
        """The points of each curve."""
        return tuple(_points(curve, "step") for curve in data.curves)

    def checks(self, runs: Sequence[Path], data: CurvesData) -> Iterator[Check]:
        """Reads the metrics again from the end of their file, and repeats the newest evaluation."""
        yield from _check_curves([(runs[0], quantity) for quantity in self._quantities], data.curves, "step")

    @property
    def _quantities(self) -> tuple[str, ...]:
        return tuple(quantity for panel in self.panels for quantity in PANELS[panel])


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """One quantity of several runs."""

    explained = (
        "One quantity of several runs, so that their settings can be compared. Runs that differ in their seed alone "
        "show how much is chance: a difference smaller than that says nothing. The loss is how surprised the model is "
        "on average by each right token, in nats; 0 would be certainty."
    )
    equation = _LOSS

    quantity: str = "validation loss"
    """The name of a quantity, as QUANTITIES has it."""
    against: Against = "step"
    log: bool = True
    """True for a logarithmic scale, if it suits the quantity."""

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        return self.quantity.replace(" ", "-").replace("/", "-per-")

    def data(self, runs: Sequence[Path]) -> CurvesData:
        """A curve a run, named like it."""
        what = QUANTITIES[self.quantity]
        curves = (progress_of(run).curve(what.split, what.column, run.name, self.against) for run in runs)
        return CurvesData(tuple(curves))

    def drawn(self, data: CurvesData) -> Panel:
        """The curves as one set of axes."""
        what = QUANTITIES[self.quantity]
        log = self.log and what.log
        return Panel(title=what.title, main=data.curves, percent=what.percent, log=log, height=320, overlay=True)

    def figure(self, data: CurvesData, *, dark: bool = False) -> go.Figure:
        """The curves in one picture."""
        panel = self.drawn(data)
        return overlay_figure(
            data.curves, title=panel.title, against=self.against, log=panel.log, percent=panel.percent, dark=dark
        )

    def tables(self, data: CurvesData) -> tuple[DataFrame, ...]:
        """The points of each run."""
        return tuple(_points(curve, self.against) for curve in data.curves)

    def checks(self, runs: Sequence[Path], data: CurvesData) -> Iterator[Check]:
        """Reads the metrics again from the end of their files, and repeats each run's newest evaluation."""
        yield from _check_curves([(run, self.quantity) for run in runs], data.curves, self.against)


@dataclass(frozen=True)
class SweepData:
    """The runs of a sweep, the setting of each, and its newest results."""

    runs: tuple[str, ...]
    values: tuple[float | str, ...]
    """Numbers where the setting is one; else words."""
    reached: Float[ndarray, "run quantity"]
    """The last value of the chart's quantity and of REACHED, as the metrics have them; NaN before the first."""
    steps: Int[ndarray, "run quantity"]
    """The steps of these values; 0 before the first."""
    ended: Bool[ndarray, " run"]
    """False while a trainer works on it, or is going to."""


@dataclass(frozen=True, kw_only=True)
class SweepChart:
    """The results of runs against the setting in which they differ."""

    explained = (
        "Each point is one run; across stands the one setting in which the runs differ, up what they reached. "
        "Everything else is the same, so a slope is the effect of that setting, as far as it is larger than chance "
        "between seeds."
    )

    setting: str
    """The name of the setting with its section, as in "model.n_heads"."""
    quantity: str = "validation loss"
    """The quantity of the chart, as QUANTITIES has it."""

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        return f"{self.setting.replace('.', '-')}-{self.quantity.replace(' ', '-')}"

    @property
    def quantities(self) -> tuple[str, ...]:
        """The quantities of the data, that of the chart first."""
        return tuple(dict.fromkeys((self.quantity, *REACHED)))

    def data(self, runs: Sequence[Path]) -> SweepData:
        """Each run's setting, and the last values of its quantities with their steps."""
        columns, found = [QUANTITIES[name] for name in self.quantities], [progress_of(run) for run in runs]
        reached = [[progress.last(what.split, what.column) for what in columns] for progress in found]
        steps = [[int(progress.last(what.split, "step") or 0) for what in columns] for progress in found]
        return SweepData(
            runs=tuple(run.name for run in runs),
            values=tuple(_value(read_settings(run), self.setting) for run in runs),
            reached=np.array(reached, dtype=np.float64),  # None -> NaN
            steps=np.array(steps),
            ended=np.array([not _is_active(run) for run in runs], dtype=bool),
        )

    def figure(self, data: SweepData, *, dark: bool = False) -> go.Figure:
        """A mark a run, in the colour of its curve beside the chart."""
        what, label = QUANTITIES[self.quantity], label_of(self.setting)
        factor, unit = (100, " %") if what.percent else (1, "")
        marks = [
            Mark(value, float(reached) * factor if np.isfinite(reached) else None, run, bool(ended), place)
            for place, (run, value, reached, ended) in enumerate(
                zip(data.runs, data.values, data.reached[:, 0], data.ended, strict=True)
            )
        ]
        return sweep_figure(marks, setting=label, title=what.title, unit=unit, percent=what.percent, dark=dark)

    def tables(self, data: SweepData) -> tuple[DataFrame, ...]:
        """The results of each run."""
        rows = [f"{run}, {label_of(self.setting)} {value}" for run, value in zip(data.runs, data.values, strict=True)]
        return tuple(
            column_table(name, rows, {QUANTITIES[name].column: data.reached[:, i], "step": data.steps[:, i]})
            for i, name in enumerate(self.quantities)
        )

    def checks(self, runs: Sequence[Path], data: SweepData) -> Iterator[Check]:
        """Reads settings, states and metrics again from their files, and repeats each run's newest evaluation."""
        section, _, name = self.setting.partition(".")
        had = [json.loads((run / CONFIG_FILE).read_text(encoding="utf-8"))[section][name] for run in runs]
        off = sum(shown not in (own, value_text(own)) for shown, own in zip(data.values, had, strict=True))
        how = f"{CONFIG_FILE} of {len(runs)} runs read again; runs that differ"
        yield Check(f"Each run had the value shown of {self.setting}", off, 0, how)
        ended = [not _is_active(run) for run in runs]
        how = f"{STATUS_FILE} of each run; runs that differ"
        yield agree("A hollow mark is a run at work", data.ended.astype(int), np.array(ended, dtype=int), 0, how)
        for place, run in enumerate(runs):
            for i, what in enumerate(QUANTITIES[quantity] for quantity in self.quantities):
                yield check_last(
                    run.name,
                    run,
                    what.split,
                    what.column,
                    float(data.reached[place, i]),
                    step=int(data.steps[place, i]),
                    ended=ended[place],
                )
        for run in runs:
            yield from _check_newest(run, share=len(runs))


def _named(settings: Settings, progress: Progress, quantity: str) -> Curve:
    """Returns a curve under its full name."""
    what = QUANTITIES[quantity]
    smoothed = settings.train.label_smoothing > 0
    name = quantity
    if quantity == "training loss" and smoothed:
        name = "training loss, label-smoothed"
    elif quantity == "validation loss" and smoothed:
        name = "validation loss, not smoothed"
    elif what.column != "loss":
        name = f"{'training' if what.split == 'train' else what.split} {quantity}"
    return progress.curve(what.split, what.column, name)


def _points(curve: Curve, against: str) -> DataFrame:
    return column_table(curve.name, [str(i) for i in range(len(curve.x))], {against: curve.x, curve.name: curve.y})


def _value(settings: Settings, setting: str) -> float | str:
    section, _, name = setting.partition(".")
    config = getattr(settings, section)
    if name not in config.__dataclass_fields__:  # it may be the same for all models of a family
        raise ValueError(f"{name} is no setting of {settings.name}: models of its family have none")
    value = getattr(config, name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else value_text(value)


def _is_active(run: Path) -> bool:
    return (run / STATUS_FILE).is_file() and read_status(run).active


def _check_curves(places: Sequence[tuple[Path, str]], curves: Sequence[Curve], against: Against) -> Iterable[Check]:
    """Checks the points against the metrics, and each run's newest evaluation against its weights."""
    for (folder, quantity), curve in zip(places, curves, strict=True):
        what = QUANTITIES[quantity]
        yield check_points(folder, what.split, what.column, curve, against)
        if what.column == "perplexity":
            yield run_checks.check_perplexity(folder)
        if what.column == "learning_rate":
            yield run_checks.check_rates(folder, read_settings(folder).train)
    folders = list(dict.fromkeys(folder for folder, _ in places))
    for folder in folders:
        yield from _check_newest(folder, share=len(folders))


def _check_newest(folder: Path, *, share: int) -> Iterator[Check]:
    """Repeats the newest evaluation of a folder whose weights are kept; says if there is none.

    It takes at most BUDGET_S / `share` seconds for each of loss and exact match.
    """
    rows = {step: row for (split, step), row in run_log_rows(folder).items() if split == "validation"}
    kept = evaluated_weights(folder)
    nothing = f"Nothing is claimed about {folder.name}'s evaluations"
    steps = sorted(rows.keys() & kept.keys())
    if not steps:
        yield Check(nothing, 0, 0, f"no weights of {folder.name} are kept from an evaluation, so none is made again")
        return
    try:
        checkpoint = load_checkpoint(folder, weights=kept[steps[-1]])
        yield from run_checks.check_evaluation(
            checkpoint.model,
            checkpoint.tokenizer,
            load_own(checkpoint.corpus_config, folder).validation,
            checkpoint.train_config,
            rows[steps[-1]],
            whose=f"of {folder.name} " if share > 1 else "",
            budget_s=run_checks.BUDGET_S / share,
        )
    except (CheckpointError, CorpusError, ValueError) as error:
        yield Check(nothing, 0, 0, f"one of them cannot be made again: {str(error).rstrip('.')}")
