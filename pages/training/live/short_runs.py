"""Starts runs at the press of a button and drops those that a turned knob cut short; all like those of Train."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from pages.shared.context import say, sentence
from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import Problem
from pages.training.live.reading import reader_of, refusal
from pages.training.plans import Plan
from transformer.access.ownership import may_change
from transformer.checkpoints.settings import CheckpointError
from transformer.data.corpora import CorpusError
from transformer.runs import run_folder
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError

EXPECTED = (RunError, CorpusError, CheckpointError, ValueError, OSError)
"""The errors with which a start can be refused; each says why."""
START = "start"
"""The place of a page's problem beside its buttons."""
_ABANDONED = "short-runs-abandoned"


def find(run_id: str) -> Run | None:
    """Returns the run of this id; None for no id, and where it was deleted."""
    try:
        return run_folder.get_run(run_id) if run_id else None
    except (RunError, CheckpointError):
        return None


def is_over(run: Run) -> bool:
    """Tells whether a run has come to its end, or was stopped before it."""
    return run.status.state in ("finished", "stopped")


def create(*plans: Plan) -> tuple[str, ...]:
    """Returns the ids of new runs of these plans, all of them or none; raises EXPECTED.

    A sentence that its model cannot read is not translated by the run: the page says why, beside the field.
    """
    created: list[str] = []
    try:
        for plan in plans:
            model, train, corpus = plan.configs()
            readable = [text for text in plan.sentences or () if not refusal(text, reader_of(plan))]
            created.append(run_folder.create_run(model, train, corpus, pinned=readable))
    except EXPECTED:
        for run_id in created:
            with suppress(RunError):
                run_folder.delete(run_id)
        raise
    return tuple(created)


def abandon(runs: Sequence[Run | None]) -> None:
    """Ends these runs unless they are over: nobody asked to keep what a turned knob cut short."""
    for run in runs:
        if run is None or is_over(run) or not may_change(run.folder):
            continue
        with suppress(RunError):  # it ended a moment ago
            run_folder.pause(run.id)
        st.session_state.setdefault(_ABANDONED, []).append(run.id)


def sweep_up() -> None:
    """Deletes runs that were abandoned before their end, once their trainers have let go of them."""
    left = []
    for run_id in st.session_state.get(_ABANDONED, []):
        try:
            run_folder.delete(run_id)
        except RunError:
            left.append(run_id)
    st.session_state[_ABANDONED] = left


def attempt(page: UrlPart[Any], action: Callable[[], object]) -> None:
    """Does something on behalf of the page's visitor, and tells the page where it comes to nothing; for callbacks."""
    page.change()
    try:
        action()
    except EXPECTED as error:
        page.tell(Problem(START, f"{error}."))


def say_refusal(page: UrlPart[Any]) -> None:
    """Says why the last press of a button came to nothing, if it did."""
    say(*map(sentence, page.said(START)))
