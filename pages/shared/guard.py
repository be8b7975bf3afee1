"""Parts of a page that fail alone: a sentence where the part would stand, the error in the server's log.

    with guard("The timeline"):  # or, around a function, @guard("The timeline")
        ...
    guarded_fragment("The curves", _panel, every=1.0)(run_id)

What a control does when it is used fails alone too, once `guard_callbacks` was called.

This is for faults that nobody foresaw. What a visitor can put right is caught where it happens and said in full.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

import streamlit as st
from streamlit.runtime.state import SessionState

from pages.shared.background import Died
from pages.shared.url.session import enter_fragment

P = ParamSpec("P")

FAILED = "could not be shown because of a fault in this app"
_FAILURES = "attention-lab-failures"
NOT_DONE = "That could not be done because of a fault in this app"
_log = logging.getLogger(__name__)


@contextmanager
def guard(what: str) -> Iterator[None]:
    """Renders the part of a page within it; if it raises, says so in its place, `what` being the sentence's subject.

    Streamlit's own signals to stop or to run again pass through.
    """
    try:
        yield
    except Exception as error:
        _log.exception("%s could not be shown", what)
        text = f"{what} {FAILED} ({type(error).__name__}). The server's log has the details."
        if isinstance(error, Died):  # which says itself what a visitor can do
            text = f"{what} could not be shown: {error}."
        st.error(text, icon=":material/error:")


def guarded_fragment(what: str, render: Callable[P, None], *, every: float | None = None) -> Callable[P, None]:
    """Returns `render` as a fragment that runs by itself, again after `every` seconds, and fails alone."""

    @wraps(render)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        enter_fragment()
        with guard(what):
            render(*args, **kwargs)
        render_failures()

    return st.fragment(guarded, run_every=every)


def guard_callbacks() -> None:
    """Makes Streamlit draw the page even if the callback of a control raises; harmless to repeat.

    It would show the error in place of the whole page, also of what is no part of it, such as the navigation. All kinds
    of callbacks pass through this one method, and there is no public switch.
    """
    run = SessionState._run_callback_and_record_rerun
    if hasattr(run, "__wrapped__"):
        return

    @wraps(run)
    def run_guarded(self: SessionState, votes: Any, callback: Callable[[], None]) -> None:
        run(self, votes, lambda: _fail_alone(callback))

    SessionState._run_callback_and_record_rerun = run_guarded  # type: ignore[method-assign]


def _fail_alone(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception as error:
        _log.exception("the callback of a control failed")
        st.session_state.setdefault(_FAILURES, []).append(type(error).__name__)


def render_failures() -> None:
    """Renders a notice for each callback that failed since the last; for the end of a run, as one that begins anew
    before its end would lose it."""
    for name in st.session_state.pop(_FAILURES, ()):
        text = f"{NOT_DONE} ({name}). The server's log has the details."
        st.toast(text, icon=":material/error:", duration="long")
