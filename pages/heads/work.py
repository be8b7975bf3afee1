"""Long computations of the Heads page: in the background, one at a time on this server, with progress and a stop. Brief
ones wait only for each other.

Results are kept for every visitor who asks for the same. A computation runs while a visitor who asked for it is there
and has not stopped it; it does not block the page, and leaving the page does not end it.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from pages.shared.background import Background, Watcher
from pages.shared.context import say, sentence
from pages.shared.waiting import connection, follow_work, wait_a_moment
from transformer.analysis.heads.addresses import Tell

_SESSION = "heads-work"

Found = TypeVar("Found")


class Reader(Watcher):
    """One visitor's session, and the computations that it has stopped."""

    def __init__(self, is_connected: Callable[[], bool]) -> None:
        super().__init__(is_connected)
        self.stopped: set[Hashable] = set()


@st.cache_resource
def works(*, brief: bool = False) -> Background:
    """Returns a background worker of this server."""
    return Background("heads-brief" if brief else "heads")


def result_of(
    purpose: str,
    key: Hashable,
    compute: Callable[[Tell], Found],
    doing: str,
    *,
    wait: bool = True,
    brief: bool = False,
) -> Found | None:
    """Returns what `compute` finds, or None while it runs or was stopped or failed, which is then said here.

    `key` holds all that the result depends on. A session that asks for another one for the same purpose leaves the one
    before. Work that is `brief` does not wait for long work. Unless told not to `wait`, the page waits a moment for it.
    """
    watcher = _watcher()
    if key in watcher.stopped:
        _render_stopped(watcher, key, doing)
        return None
    work = works(brief=brief).submit_instead(purpose, key, compute, watcher)
    if wait and not work.over.is_set():
        with st.spinner(doing):
            wait_a_moment(work)
    if not work.over.is_set():
        follow_work(work, doing, lambda: _stop(watcher, key), key="heads-cancel")
        return None
    if work.stopped:  # ended between two looks
        st.rerun()
    try:
        return work.result()
    except ValueError as error:
        say(sentence(str(error)))
        return None


def _watcher() -> Reader:
    return st.session_state.setdefault(_SESSION, Reader(connection()))


def _stop(watcher: Reader, key: Hashable) -> None:
    watcher.stopped.add(key)
    for brief in (False, True):
        works(brief=brief).leave(key, watcher)


def _render_stopped(watcher: Reader, key: Hashable, doing: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"{doing}: cancelled.", width="content")
        st.button("Compute it anyway", key="heads-go-on", on_click=watcher.stopped.discard, args=(key,))
