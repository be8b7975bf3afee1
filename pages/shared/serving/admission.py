"""The door of the server: as many visitors at a time as it serves well, and a queue for those who come meanwhile.

A server that let everybody in would become slower for all without bound. Who waits sees the place in the queue, and is
let in without doing anything. `Door` knows no Streamlit; `admit` is what the app calls.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shared.serving.machine import MAX_SESSIONS, cache_bytes, cores, memory_bytes, setting
from pages.shared.waiting import is_connected
from transformer.access.people import acting
from transformer.interventions.names import plural

SESSIONS_A_CORE = 25
"""Sessions that one core serves: an estimate, to be measured on the machine itself with `make load`."""
SESSION_BYTES, SERVER_BYTES = 15_000_000, 800_000_000
"""Memory for one session, and for a server without one beside its results: estimates with room to spare."""
IDLE_S = 1_200.0
"""Seconds without a change of the page after which a session leaves its place to one who waits."""
GRACE_S = 10.0
"""Seconds for which the place of a closed page is held: a page that is loaded again is another session."""
_EVERY_S, _SLOWER_BY_S = 2.0, 0.1
"""Seconds between two looks at the queue, and how much longer they are for each one ahead."""


def max_sessions() -> int:
    """Returns the sessions that are let in at a time: by the setting, or by this machine's cores and memory."""
    fit = (memory_bytes() - cache_bytes() - SERVER_BYTES) // SESSION_BYTES
    return setting(MAX_SESSIONS, default=min(fit, SESSIONS_A_CORE * cores()))


@dataclass
class _Inside:
    visitor: str
    seen: float
    """The time of the last change of the page."""
    gone: float | None = None
    """The time at which its connection was first found closed."""


class Door:
    """The sessions that are inside and those that wait, in the order in which they came."""

    def __init__(self, limit: Callable[[], int], alive: Callable[[str], bool]) -> None:
        """`alive` tells whether a session still has a connection."""
        self._limit, self._alive = limit, alive
        self._lock = threading.Lock()
        self._inside: dict[str, _Inside] = {}
        self._waiting: OrderedDict[str, None] = OrderedDict()

    def enter(self, session: str, visitor: str, now: float) -> int:
        """Returns 0 if the session is inside, now or before; else its place in the queue, 1 for the next."""
        with self._lock:
            self._look_around(now)
            if (known := self._inside.get(session)) is not None:
                known.seen, known.gone = now, None
                return 0
            free = self._limit() - len(self._inside)
            place = [*self._waiting, session].index(session) + 1
            if place > free and not self._leave_to(visitor):
                self._waiting.setdefault(session)
                return place - max(free, 0)
            self._waiting.pop(session, None)
            self._inside[session] = _Inside(visitor, now)
            return 0

    def counts(self) -> tuple[int, int]:
        """Returns how many sessions are inside, and how many wait."""
        with self._lock:
            return len(self._inside), len(self._waiting)

    def _look_around(self, now: float) -> None:
        """Forgets who has left, and while somebody waits those who have long done nothing."""
        for session in [each for each in self._waiting if not self._alive(each)]:
            del self._waiting[session]
        for session, known in list(self._inside.items()):
            if self._alive(session):
                known.gone = None
            elif known.gone is None:
                known.gone = now
            if known.gone is not None and now - known.gone > GRACE_S:
                del self._inside[session]
            elif self._waiting and now - known.seen > IDLE_S:
                del self._inside[session]

    def _leave_to(self, visitor: str) -> bool:
        """Frees the place of a page that this visitor has just closed; False if there is none."""
        for session, known in self._inside.items():
            if known.visitor == visitor and known.gone is not None:
                del self._inside[session]
                return True
        return False


DOOR = Door(max_sessions, is_connected)


def admit() -> None:
    """Goes on if this session is inside; else shows its place in the queue and ends the page."""
    if place := _place():
        _wait(place)
        st.stop()


def _place() -> int:
    context = get_script_run_ctx()
    return DOOR.enter(context.session_id, acting().id, time.monotonic()) if context else 0


def _wait(place: int) -> None:
    @st.fragment(run_every=_EVERY_S + _SLOWER_BY_S * place)
    def look() -> None:
        now = _place()
        if not now:
            st.rerun()
        ahead = "You are next." if now == 1 else f"You are number {now} in the queue."
        st.markdown("# All places are taken")
        st.markdown(f"**{ahead}** This page opens by itself as soon as there is room; leave it open.")
        limit = max_sessions()
        taken = f"{limit} {plural(limit, 'visitor')}"
        st.caption(f"This server takes {taken} at a time, so that it stays quick for each of them.")

    look()
