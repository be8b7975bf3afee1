"""A session that waits: as the watcher of work beside its page, and giving way to what its visitor asks for next."""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shared.background import Watcher, Work

FIRST_WAIT_S = 1.0
"""The time that a page waits for work beside it before it shows progress: most work is over by then."""
_WATCHER = "watcher"


def wait_a_moment(work: Work[Any]) -> bool:
    """Waits for work beside this page before its progress is shown; tells whether it is over."""
    return work.over.wait(FIRST_WAIT_S)


def session_watcher() -> Watcher:
    """Returns the watcher of this session, gone soon after its page is closed."""
    return st.session_state.setdefault(_WATCHER, Watcher(connection()))


def connection() -> Callable[[], bool]:
    """Returns what tells, in any thread, whether this session's page is still open."""
    context = get_script_run_ctx(suppress_warning=True)
    session = None if context is None else context.session_id
    return lambda: session is None or is_connected(session)


def is_connected(session: str) -> bool:
    """Tells whether a session still has a connection."""
    return not runtime.exists() or bool(runtime.get_instance().is_active_session(session))


def give_way(*_: object) -> None:
    """Ends this run of the page here if its visitor has changed something or left; takes what work tells.

    Streamlit looks for that whenever the session's state is read.
    """
    if get_script_run_ctx(suppress_warning=True) is not None:
        st.session_state.get(_WATCHER)
