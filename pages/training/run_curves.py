"""The curves of one run, one quantity a panel; the visitor chooses which."""

import streamlit as st

from pages.shared.components.run_progress import run_curve
from pages.shared.exhibit import exhibit
from pages.shared.fields import pills
from transformer.analysis.training.progress import Progress
from transformer.figures.training.curves import X_TITLES
from transformer.runs.run_folder import Run
from transformer.views.subjects import Runs
from transformer.views.training.runs import PANELS, QUANTITIES, SCORES, RunCurves

PARAMETER = "curve"
FIRST = RunCurves.panels


def render_curves(run: Run, progress: Progress) -> None:
    """The choice of quantities, and a panel for each, over one axis of steps."""
    if progress.last("train", "loss") is None and not run.status.active:
        return
    offered = [name for name in PANELS if name not in SCORES or _has(progress, name)]
    asked = st.query_params.get_all(PARAMETER)
    known = [name for name in asked if name in (*PANELS, "none")] or FIRST
    chosen = tuple(name for name in offered if name in known)
    pills("Curves", offered, chosen, _choose, key="curves-shown")
    if not chosen:
        st.caption("Choose what to see over the steps.")
        return
    limit = run.settings.train.max_steps if run.settings.train.max_seconds is None else 1
    least = min(limit, max(20.0, 1.25 * run.status.step)) if run.status.active else 1
    view = RunCurves(panels=chosen)
    exhibit(
        Runs((run.folder,)),
        view,
        draw=lambda data: run_curve(view.drawn(data), x_title=X_TITLES["step"], x_least=least, key="curve"),
        live=run.status.active,
    )


def _has(progress: Progress, name: str) -> bool:
    value = progress.last("validation", QUANTITIES[name].column)
    return value is not None and value == value


def _choose(names: list[str]) -> None:
    if sorted(names) == sorted(FIRST):
        st.query_params.pop(PARAMETER, None)
    else:
        st.query_params[PARAMETER] = names or ["none"]
