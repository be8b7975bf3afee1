"""Starts, pauses and replaces the run of the Playground; each is a run like those of the Train page."""

from typing import Any

import streamlit as st

from pages.playground.choices import PAGE, SLOW
from transformer.access.ownership import may_change
from transformer.checkpoints.settings import CheckpointError
from transformer.data.corpora import CorpusError
from transformer.runs import run_folder
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError

EXPECTED = (RunError, CorpusError, CheckpointError, ValueError, OSError)
"""The errors with which a start can be refused; each says why."""
_REFUSAL, _ABANDONED = "playground-refusal", "playground-abandoned"


def current_run() -> Run | None:
    """Returns the run on show; None before the first, and where it was deleted."""
    try:
        return run_folder.get_run(PAGE.now.run) if PAGE.now.run else None
    except (RunError, CheckpointError):
        return None


def refusal() -> str:
    """Returns why the last press of a button came to nothing."""
    return st.session_state.get(_REFUSAL, "")


def play() -> None:
    """Starts a run, or goes on with the one that was paused; for callbacks."""
    run = current_run()
    _try(_resume if run is not None and run.resumable else _begin)


def pause() -> None:
    """Pauses the run; for callbacks."""
    _try(lambda: run_folder.pause(PAGE.now.run))


def step() -> None:
    """Trains for a single step and pauses; for callbacks."""

    def one_step() -> None:
        run = current_run()
        if run is not None and run.resumable:
            _resume()
        else:
            _begin()
        run_folder.pause(PAGE.now.run)  # read after the first step of a trainer

    _try(one_step)


def restart() -> None:
    """Starts anew with the same knobs; for callbacks."""
    _try(_begin)


def turn(**changes: Any) -> None:
    """Turns knobs; a run that has begun is replaced at once by one with the new settings. For callbacks."""
    had_run = current_run() is not None
    PAGE.change(**changes)
    if had_run:
        _try(_begin)


def slow_down(slow: bool) -> None:
    """Lets a run take its time, or not; one at work does so from its next step on. For callbacks."""
    PAGE.change(slow=slow)
    run = current_run()
    if run is not None and run.status.active:
        _try(lambda: run_folder.hold_to(run.id, _pace()))


def sweep_up() -> None:
    """Deletes runs that were abandoned before their end, once their trainers have let go of them."""
    left = []
    for run_id in st.session_state.get(_ABANDONED, []):
        try:
            run_folder.delete(run_id)
        except RunError:
            left.append(run_id)
    st.session_state[_ABANDONED] = left


def _begin() -> None:
    _abandon()
    knobs = PAGE.now
    model, train, corpus = knobs.plan.configs()
    run_id = run_folder.create_run(model, train, corpus, pinned=(knobs.string,))
    PAGE.change(run=run_id)
    run_folder.start(run_id, _pace())


def _resume() -> None:
    run_folder.start(PAGE.now.run, _pace())


def _pace() -> float | None:
    return SLOW if PAGE.now.slow else None


def _abandon() -> None:
    """Ends the run on show unless it is finished: nobody asked to keep what a turned knob cut short."""
    run = current_run()
    if run is None or run.status.state in ("finished", "stopped") or not may_change(run.folder):
        return
    if run.status.active:
        run_folder.pause(run.id)
    st.session_state.setdefault(_ABANDONED, []).append(run.id)


def _try(action: Any) -> None:
    st.session_state[_REFUSAL] = ""
    try:
        action()
    except EXPECTED as error:
        st.session_state[_REFUSAL] = f"{error}."
