"""Parts of a page that fail alone: a sentence where the part would stand, the error in the server's log.

    with guard("The timeline"):  # or, around a function, @guard("The timeline")
        ...
    guarded_fragment("The curves", _panel, every=1.0)(run_id)

This is for faults that nobody foresaw. What a visitor can put right is caught where it happens and said in full.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

import streamlit as st

from pages.shared.background import Died

P = ParamSpec("P")

FAILED = "could not be shown because of a fault in this app"
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
    return st.fragment(guard(what)(render), run_every=every)
