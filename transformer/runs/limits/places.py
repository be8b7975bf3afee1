"""Places in the queue for work that is no run, such as an experiment: it waits as runs do, and counts as one at work.

A place is two files among the runs: NAME.json says for whom it is, since when, and whether its turn has come; NAME.lock
is held by whoever asked, and by the process that does the work. Once nobody holds the lock, the place is free again.
Not here: whose turn it is (queue.py).
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transformer import locks
from transformer.files import read_json, runs_folder, write_json
from transformer.runs.limits.quota import Ticket

PLACE = "ATTENTION_LAB_PLACE"
"""The environment of a process that works in the place of whoever started it names the file of that place."""
_FOLDER = ".places"


@dataclass(frozen=True)
class Place:
    """A place as its file tells it."""

    path: Path
    ticket: Ticket
    granted: bool = False
    """True once its turn has come."""
    pid: int | None = None
    """The process that does the work: a run that it trains takes no second place."""


@contextmanager
def asked_place(owner: str, *, granted: bool = False) -> Iterator[tuple[Path, int]]:
    """Asks for a place as long as the block lasts; yields its file and the handle that holds it, to pass on."""
    folder = runs_folder() / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{uuid.uuid4().hex}.json"
    handle = locks.take(path.with_suffix(".lock"))
    assert handle is not None, "nobody else knows the name"
    try:
        write_json(path, {"owner": owner, "asked": time.time(), "granted": granted})
        yield path, handle
    finally:
        _remove(path)
        os.close(handle)


def is_place(path: Path) -> bool:
    """Tells whether this is the file of a place, and not the folder of a run."""
    return path.parent.name == _FOLDER  # which cannot be the name of a run


def grant(path: Path) -> None:
    """Tells whoever waits for this place that its turn has come."""
    write_json(path, read_json(path) | {"granted": True})


def is_granted(path: Path) -> bool:
    """Tells whether the turn of this place has come."""
    return read_json(path).get("granted") is True


def work_in(path: Path) -> None:
    """Notes this process as the one that works in a place."""
    write_json(path, read_json(path) | {"pid": os.getpid()})


def places() -> Iterator[Place]:
    """Yields the places that somebody waits for or works in; removes those that were left behind."""
    for path in sorted((runs_folder() / _FOLDER).glob("*.json")):
        if not locks.is_held(path.with_suffix(".lock")):
            _remove(path)
            continue
        content = read_json(path)
        owner, asked, pid = content.get("owner"), content.get("asked"), content.get("pid")
        yield Place(
            path=path,
            ticket=Ticket(owner=str(owner or ""), asked=asked if isinstance(asked, int | float) else 0.0),
            granted=content.get("granted") is True,
            pid=pid if isinstance(pid, int) else None,
        )


def _remove(path: Path) -> None:
    for file in (path, path.with_suffix(".lock")):
        file.unlink(missing_ok=True)
