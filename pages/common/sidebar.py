"""Runs in progress, as small bars that move by themselves."""

import streamlit as st

from transformer.runs import Run, list_runs

_EVERY_S = 2.0


def runs_in_progress() -> None:
    """A bar for each run that is training now; nothing is drawn, and nothing polls, where there is none."""
    if any(run.status.active for run in list_runs()):
        st.fragment(_bars, run_every=_EVERY_S)()


def _bars() -> None:
    for run in list_runs():
        if run.status.active:
            st.progress(_share(run), text=f"{run.id} · step {run.status.step:,} of {run.settings.train.max_steps:,}")


def _share(run: Run) -> float:
    return min(1.0, run.status.step / run.settings.train.max_steps)
