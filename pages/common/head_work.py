"""Long computations of the Heads page: in the background, one at a time on this server, with progress and a stop.

What was found is kept for every visitor who asks for the same. A computation goes on while a visitor who asked for it
is there and has not stopped it; it does not hold the page, and leaving the page does not end it.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakSet

import streamlit as st

from pages.common.controls import say
from pages.common.training.timing import duration
from transformer.analysis.head_places import Tell

FIRST_WAIT_S = 1.0
"""A page waits so long before it shows progress: most of it is found by then."""
EVERY_S = 0.5
_KEPT = 60
_SESSION = "heads-work"

Found = TypeVar("Found")


class Stopped(Exception):
    """Nobody waits for the computation any more."""


class Watcher:
    """One visitor's session: what it waits for, and what it has stopped."""

    def __init__(self) -> None:
        self.wanted: dict[str, Hashable] = {}
        """By purpose, what the session last asked for."""
        self.stopped: set[Hashable] = set()


class Work:
    """One computation, at work, done or stopped."""

    def __init__(self, compute: Callable[[Tell], Any]) -> None:
        self.share = 0.0
        """Of the work, done."""
        self.begun: float | None = None
        self.over = threading.Event()
        self.found: Any = None
        self.error: Exception | None = None
        self.watchers: WeakSet[Watcher] = WeakSet()
        self._compute = compute

    @property
    def left_s(self) -> float | None:
        """Seconds left by what was done so far; None where that cannot be said yet."""
        if self.begun is None or self.share < 0.02:
            return None
        return (time.monotonic() - self.begun) * (1 - self.share) / self.share

    def run(self) -> None:
        """Computes; what it raises is kept."""
        self.begun = time.monotonic()
        try:
            self._tell(0.0)
            self.found = self._compute(self._tell)
        except Exception as error:
            self.error = error
        self.over.set()

    def _tell(self, share: float) -> None:
        self.share = share
        if not self.watchers:
            raise Stopped


@dataclass
class Works:
    """All computations of this server."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    """Held by the one that computes."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: OrderedDict[Hashable, Work] = field(default_factory=OrderedDict)

    def of(self, key: Hashable, compute: Callable[[Tell], Any], watcher: Watcher) -> Work:
        """The computation of this key, begun where it is new or was stopped."""
        with self.lock:
            work = self.known.get(key)
            if work is None or isinstance(work.error, Stopped):
                work = self.known[key] = Work(compute)
                work.watchers.add(watcher)
                # A daemon: a server that is stopped does not wait for a search.
                threading.Thread(target=self._run, args=(work,), daemon=True).start()
            work.watchers.add(watcher)
            self.known.move_to_end(key)
            while len(self.known) > _KEPT:
                self.known.popitem(last=False)
            return work

    def _run(self, work: Work) -> None:
        with self.turn:
            work.run()

    def leave(self, key: Hashable, watcher: Watcher) -> None:
        """One visitor waits no longer."""
        with self.lock:
            if (work := self.known.get(key)) is not None:
                work.watchers.discard(watcher)


@st.cache_resource
def works() -> Works:
    """Those of this server."""
    return Works()


def result_of(
    purpose: str, key: Hashable, compute: Callable[[Tell], Found], doing: str, *, wait_s: float | None = None
) -> Found | None:
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
    work = works().of(key, compute, watcher)
    if not work.over.is_set():
        with st.spinner(doing):
            work.over.wait(FIRST_WAIT_S if wait_s is None else wait_s)
    if not work.over.is_set():
        st.fragment(_progress, run_every=EVERY_S)(work, watcher, key, doing)
        return None
    if isinstance(work.error, Stopped):  # ended between two looks
        st.rerun()
    if isinstance(work.error, ValueError):
        say(f"{str(work.error)[:1].upper()}{str(work.error)[1:]}.")
        return None
    if work.error is not None:
        raise work.error
    return work.found


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
