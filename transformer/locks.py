"""Locks that the system lifts when their holder ends, however it ends: a file, held through an open handle.

A handle that is passed on to another process holds the lock there too, until the last copy is closed.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: there, two starts of one run at the same moment are not kept apart
    fcntl = None

_LOOK_AGAIN_S = 0.01


def take(path: Path, *, patience_s: float = 0.2) -> int | None:
    """A handle that holds the lock until it is closed; None where somebody else holds it for longer than the patience.

    `is_held` holds a lock for an instant, which is why no patience at all would refuse what is free.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    end = time.monotonic() + patience_s
    while fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(handle)
                return None
            time.sleep(_LOOK_AGAIN_S)
    return handle


def is_held(path: Path) -> bool:
    """Tells whether a living process holds this lock."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """A block that waits for the lock and holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
