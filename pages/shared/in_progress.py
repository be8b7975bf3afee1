"""Decodings that some thread is at just now, for another to look at what is written so far. No Streamlit here."""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from transformer.lab import Inspection


@dataclass(frozen=True)
class InProgress:
    """A decoding that goes on."""

    begun: float
    """When, by `time.monotonic`."""
    n_steps: int
    most: int
    """As many steps may be needed."""
    so_far: Callable[[], Inspection]
    """Makes the inspection of these steps, or of some more."""

    @property
    def since_s(self) -> float:
        """Seconds that it has taken."""
        return time.monotonic() - self.begun

    @property
    def left_s(self) -> float:
        """Seconds that it may still take, at this pace."""
        return self.since_s / self.n_steps * (self.most - self.n_steps)


_FOUND: dict[Hashable, InProgress] = {}


@contextmanager
def announced(name: Hashable, *, most: int) -> Iterator[Callable[[int, Callable[[], Inspection]], None]]:
    """Gives what `Lab.inspect` takes as `watch`; until the block ends `look(name)` finds its steps, at most `most`."""
    begun = time.monotonic()

    def watch(n_steps: int, so_far: Callable[[], Inspection]) -> None:
        _FOUND[name] = InProgress(begun, n_steps, most, so_far)

    try:
        yield watch
    finally:
        _FOUND.pop(name, None)


def look(name: Hashable) -> InProgress | None:
    """The decoding of this name that is under way after its first step; None where none is."""
    return _FOUND.get(name)
