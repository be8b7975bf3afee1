"""Who follows what: a page makes a watch, and its browser gets an address that nobody can guess.

The address stands for the watch, person and sentence included, so that nothing has to be believed of who asks for it.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pages.shared.url.base_path import base_path
from transformer.access.people import Person, acting
from transformer.runs.live.watched import LiveOutput
from transformer.runs.run_folder import Run

FOLDER = "live"
"""The first part of the addresses of streams, after the server's base path."""
MAX_WATCHES = 10_000
Source = Literal["output", "metrics", "samples", "status"]


@dataclass(frozen=True)
class Look:
    """A run at one moment."""

    run: Run
    output: LiveOutput | None
    """The newest output for the watched sentence; None before the first."""
    memory: dict[str, Any] = field(default_factory=dict)
    """Kept between the looks at one sentence of one run."""


@dataclass(frozen=True)
class LivePart:
    """A component that follows a run."""

    name: str
    on: tuple[Source, ...]
    """The news of the run by which it changes."""
    data: Callable[[Look], tuple[int, dict[str, Any]] | None]
    """Returns the step that is shown and the component's data; None while there is nothing to show."""
    beside: tuple[Path, ...] = ()
    """The folders of other runs, whose metrics it shows too."""


@dataclass(frozen=True)
class Watch:
    """What one page follows."""

    person: Person
    folder: Path
    text: str
    parts: tuple[LivePart, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Returns the folders of all runs that it shows."""
        return tuple(dict.fromkeys((self.folder, *(folder for part in self.parts for folder in part.beside))))


class Watches:
    """Watches by their address: the newest, as many as `most`."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._tickets: OrderedDict[Watch, str] = OrderedDict()
        self._watches: dict[str, Watch] = {}

    def ticket(self, watch: Watch) -> str:
        """Returns the end of the watch's address, the same each time."""
        with self._lock:
            ticket = self._tickets.pop(watch, None) or secrets.token_urlsafe(18)
            self._tickets[watch], self._watches[ticket] = ticket, watch
            while len(self._tickets) > self._most:
                del self._watches[self._tickets.popitem(last=False)[1]]
            return ticket

    def get(self, ticket: str) -> Watch | None:
        """Returns the watch with this end of an address; None where there is none."""
        return self._watches.get(ticket)


WATCHES = Watches(MAX_WATCHES)


def address_of(run: Run, text: str, parts: tuple[LivePart, ...]) -> str:
    """Returns the address at which this visitor's browser follows a run at work with a sentence."""
    return f"{base_path()}/{FOLDER}/{WATCHES.ticket(Watch(acting(), run.folder, text, parts))}"
