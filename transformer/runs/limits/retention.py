"""Clearing of old runs and uploads on a shared server, a week after a warning. Off by default.

What has not trained for $ATTENTION_LAB_KEEP_DAYS goes; where a person has more than their quota, or all together more
than $ATTENTION_LAB_STORE_MB, the oldest go. A run that is at work, waits, is pinned for the class or kept by its owner
never goes. When each thing was first found to be one that goes stands in one file: a warning counts from there, so a
setting that is new, or a server that was off for a month, clears nothing unannounced.
"""

import contextlib
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformer.access import audit
from transformer.access.ownership import UPLOADS, is_pinned, owner_of, upload_owners
from transformer.files import read_json, runs_folder, write_json
from transformer.locks import holding
from transformer.runs.labels import about
from transformer.runs.limits.quota import (
    DAY_S,
    KEEP_DAYS,
    STORE,
    megabytes_for,
    number_setting,
    size_of,
)
from transformer.runs.run_folder import delete
from transformer.runs.status import RunError, read_status, run_ids

WARNING_S = 7 * DAY_S
"""The time between the first warning and the clearing."""
WARNINGS_FILE = ".clearing.json"
_LOCK = ".clearing.lock"


@dataclass(frozen=True, kw_only=True)
class Clearing:
    """A run or an upload that will be cleared."""

    folder: Path
    name: str
    """The name of the run, or of the uploaded file."""
    owners: frozenset[str]
    """Whom it belongs to; nobody: the operator."""
    due: float
    """Unix time."""
    reason: str
    """The reason, as the end of a sentence: "it is kept for 90 days after its last training"."""

    @property
    def is_run(self) -> bool:
        """Tells whether it is a run, and not an upload."""
        return _is_run(self.folder)


@dataclass(frozen=True, kw_only=True)
class _Thing:
    folder: Path
    owners: frozenset[str]
    used: float
    """Unix time of its last training, or of its upload."""
    may_go: bool


def announced(now: float) -> list[Clearing]:
    """Returns what will be cleared as things stand, the first to go first."""
    warned = _warnings()
    found = []
    for thing, earliest, reason in _leaving(now):
        due = max(earliest, warned.get(_key(thing.folder), now) + WARNING_S)
        named = _name(thing.folder)
        found.append(Clearing(folder=thing.folder, name=named, owners=thing.owners, due=due, reason=reason))
    return sorted(found, key=lambda one: (one.due, one.name))


def clear_old(now: float) -> list[Clearing]:
    """Clears what was announced a week ago, and notes what is announced from now on; returns what went."""
    if not runs_folder().is_dir():
        return []
    with holding(runs_folder() / _LOCK):
        found = announced(now)
        cleared = [one for one in found if one.due <= now and _clear(one)]
        warned = _warnings()
        stay = {_key(one.folder): warned.get(_key(one.folder), now) for one in found if one not in cleared}
        if stay != warned:
            write_json(runs_folder() / WARNINGS_FILE, stay)
    return cleared


def _leaving(now: float) -> Iterator[tuple[_Thing, float, str]]:
    """Yields what goes, the Unix time before which it does not, and why."""
    things = sorted(_things(), key=lambda thing: thing.used)
    days, gone = number_setting(KEEP_DAYS), set()
    for thing in things:
        if days is not None and thing.may_go and (old := thing.used + days * DAY_S) - WARNING_S <= now:
            gone.add(thing.folder)
            yield (
                thing,
                old,
                f"it is kept for {days:,g} days after its last {'training' if _is_run(thing.folder) else 'upload'}",
            )
    left = [thing for thing in things if thing.folder not in gone]
    yield from ((thing, 0.0, reason) for thing, reason in _over_the_limits(left))


def _over_the_limits(things: list[_Thing]) -> Iterator[tuple[_Thing, str]]:
    """Yields the oldest things without which nobody has more than may be, and why they go."""
    of_owner: defaultdict[str, list[_Thing]] = defaultdict(list)
    for thing in things:
        for owner in thing.owners:
            of_owner[owner].append(thing)
    gone: set[Path] = set()
    for owner, own in of_owner.items():
        most = megabytes_for(owner)
        reason = f"you have more than {most:,g} MB of runs and files" if most is not None else ""
        for thing in _oldest_beyond(own, most):
            if thing.folder not in gone:
                gone.add(thing.folder)
                yield thing, reason
    most = number_setting(STORE)
    for thing in _oldest_beyond([thing for thing in things if thing.folder not in gone], most):
        yield thing, f"the runs and files of all take more than {most:,g} MB"


def _oldest_beyond(things: list[_Thing], most_mb: float | None) -> list[_Thing]:
    """Returns the oldest of these things that have to go so that the others take no more than so many megabytes."""
    if most_mb is None:
        return []
    sizes = {thing.folder: size_of(thing.folder) for thing in things}
    excess, going = sum(sizes.values()) - most_mb * 1e6, []
    for thing in things:
        if excess > 0 and thing.may_go:
            going.append(thing)
            excess -= sizes[thing.folder]
    return going


def _things() -> Iterator[_Thing]:
    root = runs_folder()
    for folder in (root / run_id for run_id in run_ids(root)):
        now, owner = read_status(folder), owner_of(folder)
        yield _Thing(
            folder=folder,
            owners=frozenset({owner} - {""}),
            used=now.heartbeat or folder.stat().st_mtime,
            may_go=not (now.active or is_pinned(folder) or about(folder).kept),
        )
    for folder in (root / UPLOADS).glob("*/"):
        with contextlib.suppress(OSError):
            yield _Thing(folder=folder, owners=upload_owners(folder), used=folder.stat().st_mtime, may_go=True)


def _clear(one: Clearing) -> bool:
    """Removes a thing; False where a run came to work in this moment, or cannot be removed."""
    try:
        if one.is_run:
            audit.record("clear", one.folder, why=one.reason)
            delete(one.folder.name)
        else:
            shutil.rmtree(one.folder)
    except (RunError, OSError):
        return False
    return True


def _is_run(folder: Path) -> bool:
    return folder.parent.name != UPLOADS


def _name(folder: Path) -> str:
    if _is_run(folder):
        return folder.name
    return next((path.name for path in sorted(folder.iterdir()) if not path.name.startswith(".")), "a file")


def _warnings() -> dict[str, float]:
    content = read_json(runs_folder() / WARNINGS_FILE)
    return {key: float(at) for key, at in content.items() if isinstance(at, int | float)}


def _key(folder: Path) -> str:
    return folder.relative_to(runs_folder()).as_posix()
