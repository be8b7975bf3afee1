"""The curves of one run, one quantity a panel; the visitor chooses which."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import streamlit as st

from pages.shared.components.run_curve import Panel, run_curve
from pages.shared.exports import Export
from pages.shared.fields import pills
from pages.training.data import Progress
from pages.training.export_run import Source, curves_away, take_figures_away
from pages.training.run_checks import check_curves, drawn_in_place
from transformer.analysis.training.run_checks import Drawn
from transformer.checkpoints.settings import Settings
from transformer.figures.training.curves import EXACT_MATCH_TITLE, LOSS_TITLE, X_TITLES, Curve
from transformer.runs.run_folder import Run

PARAMETER = "curve"
FIRST = ("loss", "exact match")
_LOW, _TALL = 90, 190
_PERCENT = (0.0, 100.0)


@dataclass(frozen=True)
class _Quantity:
    """What one panel shows: a column of a split."""

    split: str
    column: str
    title: str
    log: bool = False
    range: tuple[float, float] | None = None
    percent: bool = False


_QUANTITIES: Mapping[str, _Quantity] = {
    "loss": _Quantity("validation", "loss", LOSS_TITLE, log=True),
    "exact match": _Quantity("validation", "exact_match", EXACT_MATCH_TITLE, percent=True),
    "perplexity": _Quantity("validation", "perplexity", "perplexity, of validation loss, not smoothed", log=True),
    "BLEU": _Quantity("validation", "bleu", "BLEU, 0 to 100", range=_PERCENT),
    "chrF": _Quantity("validation", "chrf", "chrF, 0 to 100", range=_PERCENT),
    "learning rate": _Quantity("train", "learning_rate", "learning rate"),
    "gradient norm": _Quantity("train", "gradient_norm", "gradient norm, before clipping", log=True),
    "tokens/s": _Quantity("train", "tokens_per_s", "target tokens per second"),
}
QUANTITIES = tuple(_QUANTITIES)


def draw_curves(run: Run, progress: Progress) -> None:
    """The choice of quantities, and a panel for each, over one axis of steps."""
    if progress.last("train", "loss") is None and not run.status.active:
        return
    offered = [name for name in QUANTITIES if name not in ("BLEU", "chrF") or _has(progress, name)]
    chosen = [name for name in offered if name in _chosen()]
    pills("Curves", offered, chosen, _choose, key="run-curves")
    if not chosen:
        st.caption("Choose what to see over the steps.")
        return
    limit = run.settings.train.max_steps if run.settings.train.max_seconds is None else 1
    run_curve(
        [_panel(run.settings, progress, name) for name in chosen],
        x_title=X_TITLES["step"],
        x_least=min(limit, max(20.0, 1.25 * run.status.step)) if run.status.active else 1,
        key="curve",
    )
    lines = [line for name in chosen for line in _lines(run, progress, name)]
    with st.container(horizontal=True, gap="small"):
        check_curves(lines, key="proof-curve", active=run.status.active)
        figures = {name: partial(_away, run, progress, name) for name in chosen}
        take_figures_away(figures, page="train", said=run.id, key="take-curve")


def loss_curves(settings: Settings, progress: Progress) -> tuple[Curve, Curve]:
    """Training and validation loss, each under its full name."""
    smoothed = ", label-smoothed" if settings.train.label_smoothing else ""
    return (
        progress.curve("train", "loss", f"training loss{smoothed}"),
        progress.curve("validation", "loss", "validation loss" + (", not smoothed" if smoothed else "")),
    )


def _panel(settings: Settings, progress: Progress, name: str) -> Panel:
    what = _QUANTITIES[name]
    if name == "loss":
        training, validation = loss_curves(settings, progress)
        return Panel(title=what.title, thin=[training], main=[validation], height=_TALL)
    curve = progress.curve(what.split, what.column, f"{what.split if what.split != 'train' else 'training'} {name}")
    return Panel(title=what.title, main=[curve], percent=what.percent, range=what.range, log=what.log, height=_LOW)


def _away(run: Run, progress: Progress, name: str) -> Export:
    """What the panel shows, every point of it, as a figure of its own."""
    what = _QUANTITIES[name]
    if name == "loss":
        curves = zip(("train", "validation"), loss_curves(run.settings, progress), strict=True)
        sources = [Source(curve, run.id, split, "loss") for split, curve in curves]
    else:
        curve = progress.curve(what.split, what.column, name)
        sources = [Source(curve, run.id, what.split, what.column)]
    file = f"{run.id}-{what.column.replace('_', '-')}"
    return curves_away(sources, file, title=what.title, against="step", log=what.log, percent=what.percent)


def _lines(run: Run, progress: Progress, name: str) -> list[Drawn]:
    """What the panel shows, as the browser gets it."""
    what = _QUANTITIES[name]
    if name == "loss":
        curves = zip(("train", "validation"), loss_curves(run.settings, progress), strict=True)
        return [drawn_in_place(run.folder, split, "loss", curve, percent=False) for split, curve in curves]
    curve = progress.curve(what.split, what.column, name)
    return [drawn_in_place(run.folder, what.split, what.column, curve, percent=what.percent)]


def _has(progress: Progress, name: str) -> bool:
    value = progress.last("validation", _QUANTITIES[name].column)
    return value is not None and value == value


def _chosen() -> list[str]:
    """What the URL asks for; where it asks for nothing we know, what suits best."""
    found = [name for name in st.query_params.get_all(PARAMETER) if name in (*QUANTITIES, "none")]
    return found or list(FIRST)


def _choose(names: list[str]) -> None:
    if sorted(names) == sorted(FIRST):
        st.query_params.pop(PARAMETER, None)
    else:
        st.query_params[PARAMETER] = names or ["none"]
