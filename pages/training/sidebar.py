"""Runs in progress and in the queue, as small bars that move by themselves."""

import streamlit as st

from pages.training.run_status import share_done
from transformer.runs.run_folder import Run, RunError, list_runs, start_waiting

_EVERY_S = 2.0


def runs_in_progress() -> None:
    """A bar for each run that is training or waits; nothing is drawn, and nothing polls, where there is none."""
    try:
        busy = any(run.status.active for run in list_runs())
    except RunError:  # said where a run is to be started
        return
    if busy:
        st.fragment(_bars, run_every=_EVERY_S)()


def _bars() -> None:
    start_waiting()
    for run in list_runs():
        if run.status.active:
            st.progress(share_done(run), text=f"{run.id} · {_stand(run)}")


def _stand(run: Run) -> str:
    """The step, and the last one unless the run ends by the clock; the place in the queue of one that waits."""
    if run.place:
        return f"waiting, {run.place} in the queue"
    limit = "" if run.settings.train.max_seconds is not None else f" of {run.settings.train.max_steps:,}"
    return f"step {run.status.step:,}{limit}"
