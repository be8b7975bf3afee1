"""A session that waits: as the watcher of work beside its page, with its progress and a way to end it, and giving way
to what its visitor asks for next."""

from collections.abc import Callable
from typing import Any, Literal

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shared.background import Watcher, Work
from pages.shared.guard import guarded_fragment
from pages.shared.texts.catalogue import Texts
from pages.shared.wording import duration

TEXTS = Texts("frame.waiting")
EVERY_S = 0.5
FIRST_WAIT_S = 1.0
"""The time that a page waits for work beside it before it shows progress: most work is over by then."""
_WATCHER = "watcher"
_ICONS = {"cancel": None, "stop": ":material/stop:"}

End = Callable[[], object]
"""Ends work for its visitor; called as a callback."""


def wait_a_moment(work: Work[Any]) -> bool:
    """Waits for work beside this page before its progress is shown; tells whether it is over."""
    return work.over.wait(FIRST_WAIT_S)


def follow_work(
    work: Work[Any],
    doing: str,
    end: End,
    *,
    key: str,
    name: Literal["cancel", "stop"] = "cancel",
    waits_for: Callable[[], str] = lambda: "",
    at_end: Callable[[], None] = lambda: None,
) -> None:
    """Renders the progress of work until it is over or its visitor ends it; then the page runs again.

    `waits_for` says what it waits for after it has left the queue, empty once it is being done. `at_end` is called
    before the page runs again.
    """

    def render() -> None:
        if work.over.is_set():
            at_end()
            st.rerun()
        waiting = TEXTS("queue") if work.begun is None else waits_for()
        if show_progress(doing, work.share, end, key=key, name=name, left_s=work.left_s, waits_for=waiting):
            st.rerun()

    guarded_fragment("The progress", render, every=EVERY_S)()


def show_progress(
    doing: str,
    share: float,
    end: End,
    *,
    key: str,
    name: Literal["cancel", "stop"] = "cancel",
    left_s: float | None = None,
    waits_for: str = "",
) -> bool:
    """Renders how far long work is and how long it still takes, beside the button of this name that ends it; tells
    whether that was pressed."""
    share = min(1.0, share)
    left = "" if left_s is None else TEXTS("left", duration=duration(max(1.0, left_s)))
    parts = (doing, waits_for) if waits_for else (doing, f"{share:.0%}", left)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.progress(share, text=" · ".join(filter(None, parts)))
        return st.button(TEXTS(f"end.{name}"), key=key, icon=_ICONS[name], on_click=end)


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
