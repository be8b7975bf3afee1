"""Long computations of the Heads page: in the background, one at a time on this server, with progress and a stop.

What was found is kept for every visitor who asks for the same. A computation goes on while a visitor who asked for it
is there and has not stopped it; it does not hold the page, and leaving the page does not end it.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from pages.shared.background import Background, Work
from pages.shared.background import Watcher as AnyWatcher
from pages.shared.controls import say
from pages.shared.wording import duration
from transformer.analysis.heads.addresses import Tell

FIRST_WAIT_S = 1.0
"""A page waits so long before it shows progress: most of it is found by then."""
EVERY_S = 0.5
_SESSION = "heads-work"

Found = TypeVar("Found")


class Watcher(AnyWatcher):
    """One visitor's session: what it waits for, and what it has stopped."""

    def __init__(self) -> None:
        self.wanted: dict[str, Hashable] = {}
        """By purpose, what the session last asked for."""
        self.stopped: set[Hashable] = set()


@st.cache_resource
def works() -> Background:
    """All computations of this server."""
    return Background("heads")


def result_of(
    purpose: str, key: Hashable, compute: Callable[[Tell], Found], doing: str, *, wait_s: float | None = None
) -> MinimalSets | None:
    """What `compute` finds, or None while it is at work, stopped or failed, which is then said here.

    `key` says all that it depends on. A session that asks for another one for the same purpose leaves the one before.
    """
    watcher = _watcher()
    if (earlier := watcher.wanted.get(purpose)) not in (None, key):
        works().leave(earlier, watcher)
    watcher.wanted[purpose] = key
    if key in watcher.stopped:
        _stopped(watcher, key, doing)
        return None
    work = works().submit(key, compute, watcher)
    if not work.over.is_set():
        with st.spinner(doing):
            work.over.wait(FIRST_WAIT_S if wait_s is None else wait_s)
    if not work.over.is_set():
        st.fragment(_progress, run_every=EVERY_S)(work, watcher, key, doing)
        return None
    if work.stopped:  # ended between two looks
        st.rerun()
    try:
        return work.result()
    except ValueError as error:
        say(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return None


def _watcher() -> Watcher:
    if _SESSION not in st.session_state:
        st.session_state[_SESSION] = Watcher()
    return st.session_state[_SESSION]


def _progress(work: Work, watcher: Watcher, key: Hashable, doing: str) -> None:
    if work.over.is_set() or key in watcher.stopped:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        left = work.left_s
        said = (
            "waiting for another computation"
            if work.begun is None
            else ""
            if left is None
            else f"about {duration(max(1.0, left))} left"
        )
        st.progress(min(1.0, work.share), text=" · ".join(filter(None, (doing, said))))
        st.button("Cancel", key="heads-cancel", on_click=_stop, args=(watcher, key))


def _stop(watcher: Watcher, key: Hashable) -> None:
    watcher.stopped.add(key)
    works().leave(key, watcher)


def _stopped(watcher: Watcher, key: Hashable, doing: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"{doing}: cancelled.", width="content")
        st.button("Compute it after all", key="heads-go-on", on_click=watcher.stopped.discard, args=(key,))
