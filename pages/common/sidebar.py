"""Runs in progress, as small bars that move by themselves."""

import streamlit as st

from pages.common.training.run_state import share_done
from transformer.runs import Run, list_runs

_EVERY_S = 2.0


def runs_in_progress() -> None:
    """A bar for each run that is training now; nothing is drawn, and nothing polls, where there is none."""
    if any(run.status.active for run in list_runs()):
        st.fragment(_bars, run_every=_EVERY_S)()


def _bars() -> None:
    for run in list_runs():
        if run.status.active:
            st.progress(share_done(run), text=f"{run.id} · step {run.status.step:,}{_limit(run)}")


def _limit(run: Run) -> str:
    """The last step; nothing where the run ends by the clock."""
    return "" if run.settings.train.max_seconds is not None else f" of {run.settings.train.max_steps:,}"
