"""Quotas of a visitor on a shared machine: disk for runs and uploads, and training time per day. Off by default.

Who started a run stands in its ticket.json. Runs without an owner, such as those of the command line, are not counted.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformer.access.classroom import quota_of
from transformer.access.ownership import TICKET_FILE, UPLOADS, owner_of, upload_owners
from transformer.access.server_settings import identity
from transformer.checkpoints.metric_rows import is_number
from transformer.files import append_rows, read_json, read_rows, runs_folder, write_json
from transformer.runs.status import RunError, read_status, run_ids

DISK, MINUTES = "ATTENTION_LAB_QUOTA_MB", "ATTENTION_LAB_QUOTA_MINUTES"
"""Megabytes of runs and uploads, and minutes of training in a day, that a visitor may use, unless a teacher set others;
not set: no limit."""
KEEP_DAYS, STORE = "ATTENTION_LAB_KEEP_DAYS", "ATTENTION_LAB_STORE_MB"
"""Days after its last training for which a run is kept, and megabytes of all runs and uploads (retention.py)."""
MAX_WAITING = "ATTENTION_LAB_MAX_WAITING"
"""Runs that a visitor may have in the queue at a time."""
MOST_WAITING = 24
"""The same where nothing is set and visitors are told apart: a whole sweep."""
DAY_S = 24 * 3600.0
_LEDGER = ".spent.jsonl"


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """The visitor who asked for a run, and the time."""

    owner: str = ""
    asked: float = 0.0
    """Unix time."""
    elapsed_s: float = 0.0
    """Seconds of training that the run had had before."""


def read_ticket(folder: Path) -> Ticket:
    """The ticket of a run; an empty one where it has none."""
    content = read_json(folder / TICKET_FILE)
    asked, elapsed_s = content.get("asked"), content.get("elapsed_s")
    return Ticket(
        owner=owner_of(folder),
        asked=float(asked) if is_number(asked) else 0.0,
        elapsed_s=float(elapsed_s) if is_number(elapsed_s) else 0.0,
    )


def write_ticket(folder: Path, owner: str, elapsed_s: float) -> None:
    """Gives a run a new ticket; what was spent on the one before goes into the book."""
    settle(folder)
    write_json(folder / TICKET_FILE, {"owner": owner, "asked": time.time(), "elapsed_s": elapsed_s})


def settle(folder: Path) -> None:
    """Writes into the book what a run has spent since its ticket, before the ticket is replaced or deleted."""
    ticket = read_ticket(folder)
    spent = read_status(folder).elapsed_s - ticket.elapsed_s
    if ticket.owner and spent > 0:
        append_rows(folder.parent / _LEDGER, [{"owner": ticket.owner, "time": time.time(), "seconds": spent}])


def check_quota(owner: str, *, adding: int = 0) -> None:
    """RunError with both numbers and the way out where this owner has used up what is allowed, or would with a file of
    so many bytes more."""
    if refusal := over_quota(owner, adding=adding):
        raise RunError(refusal)


def check_waiting(owner: str, waiting: int, *, adding: int = 1) -> None:
    """RunError where this owner, who has so many runs in the queue, may not add so many."""
    most = number_setting(MAX_WAITING)
    if most is None and not identity().is_one_person:
        most = MOST_WAITING
    if owner and most is not None and waiting + adding > most:
        these = "" if adding == 1 else f", and this adds {adding}"
        raise RunError(
            f"{waiting} of your runs wait already{these}, and a visitor may have {most:,g} in the queue: go on later"
        )


def check_limits() -> None:
    """RunError for a limit that is no number."""
    for name in (DISK, MINUTES, KEEP_DAYS, STORE, MAX_WAITING):
        number_setting(name)


def over_quota(owner: str, *, adding: int = 0) -> str:
    """The sentence for an owner who has used up what is allowed, or would with a file of so many bytes more; empty
    where there is room, or no limit."""
    if not owner:
        return ""
    megabytes, minutes = megabytes_for(owner), quota_of(owner).minutes
    minutes = number_setting(MINUTES) if minutes is None else minutes
    if megabytes is not None and ((used := used_bytes(owner) / 1e6) >= megabytes or used + adding / 1e6 > megabytes):
        this = f"this file has {adding / 1e6:,.3g} MB, " if adding else ""
        return (
            f"{this}your runs and files take {used:,.3g} MB on disk, and a visitor may use {megabytes:,g} MB: "
            "delete a run or a file first"
        )
    if minutes is not None and (spent := spent_s(owner) / 60) >= minutes:
        return (
            f"your runs have trained for {spent:,.0f} minutes in 24 hours, and a visitor may use {minutes:,g}: "
            "go on later"
        )
    return ""


def megabytes_for(owner: str) -> float | None:
    """Returns the megabytes that an owner may use, by a teacher's setting or the server's; None: no limit."""
    set_by_teachers = quota_of(owner).megabytes
    return number_setting(DISK) if set_by_teachers is None else set_by_teachers


def used_bytes(owner: str) -> int:
    """Bytes of this owner's runs and uploads."""
    uploads = (runs_folder() / UPLOADS).glob("*/")
    brought = (folder for folder in uploads if owner in upload_owners(folder))
    return sum(size_of(folder) for folder in (*_folders_of(owner), *brought))


def spent_s(owner: str) -> float:
    """Seconds of training by this owner's runs in the last day, deleted ones included."""
    since = time.time() - DAY_S
    book = (row for row in read_rows(runs_folder() / _LEDGER) if row.get("owner") == owner)
    times = ((row.get("time"), row.get("seconds")) for row in book)
    settled = sum(spent for at, spent in times if is_number(at) and is_number(spent) and at > since)
    open_s = 0.0
    for folder in _folders_of(owner):
        ticket, now = read_ticket(folder), read_status(folder)
        if max(now.heartbeat, ticket.asked) > since:
            open_s += max(0.0, now.elapsed_s - ticket.elapsed_s)
    return settled + open_s


def _folders_of(owner: str) -> Iterator[Path]:
    root = runs_folder()
    return (root / run_id for run_id in run_ids(root) if owner_of(root / run_id) == owner)


def size_of(folder: Path) -> int:
    """Returns the bytes of all files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # replaced or removed in this moment
            continue
    return total


def number_setting(name: str) -> float | None:
    """Returns a limit from the environment, None if it is not set; RunError for one that is no number of at least 0."""
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise RunError(f"{name} ({text!r}) must be a number of at least 0, or not be set")
    return value
