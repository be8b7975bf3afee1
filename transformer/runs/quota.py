"""Quotas of a visitor on a shared machine: disk for runs, and training time per day. Off by default.

Who started a run stands in its ticket.json. Runs without an owner, such as those of the command line, are not counted.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformer.files import append_rows, read_json, read_rows, runs_folder, write_json
from transformer.runs.status import RunError, read_status, run_ids

DISK, MINUTES = "ATTENTION_LAB_QUOTA_MB", "ATTENTION_LAB_QUOTA_MINUTES"
"""Megabytes of runs, and minutes of training in a day, that a visitor may use; not set: no limit."""
TICKET_FILE = "ticket.json"
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
    owner, asked, elapsed_s = (content.get(name) for name in ("owner", "asked", "elapsed_s"))
    return Ticket(
        owner=owner if isinstance(owner, str) else "",
        asked=float(asked) if isinstance(asked, int | float) else 0.0,
        elapsed_s=float(elapsed_s) if isinstance(elapsed_s, int | float) else 0.0,
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


def check_quota(owner: str) -> None:
    """RunError with both numbers and the way out where this owner has used up what is allowed."""
    if refusal := over_quota(owner):
        raise RunError(refusal)


def is_shared() -> bool:
    """Tells whether many use this machine: a limit is set for a visitor."""
    return any(os.environ.get(name, "").strip() for name in (DISK, MINUTES))


def check_limits() -> None:
    """RunError for a limit that is no number."""
    for name in (DISK, MINUTES):
        _number(name)


def over_quota(owner: str) -> str:
    """The sentence for an owner who has used up what is allowed; empty where there is room, or no limit."""
    megabytes, minutes = _number(DISK), _number(MINUTES)
    if not owner:
        return ""
    if megabytes is not None and (used := used_bytes(owner) / 1e6) >= megabytes:
        return f"your runs take {used:,.3g} MB on disk, and a visitor may use {megabytes:,g} MB: delete a run first"
    if minutes is not None and (spent := spent_s(owner) / 60) >= minutes:
        return (
            f"your runs have trained for {spent:,.0f} minutes in 24 hours, and a visitor may use {minutes:,g}: "
            "go on later"
        )
    return ""


def used_bytes(owner: str) -> int:
    """Bytes of this owner's runs."""
    return sum(_size(folder) for folder in _folders_of(owner))


def spent_s(owner: str) -> float:
    """Seconds of training by this owner's runs in the last day, deleted ones included."""
    since = time.time() - DAY_S
    book = (row for row in read_rows(runs_folder() / _LEDGER) if row.get("owner") == owner)
    settled = sum(row["seconds"] for row in book if row.get("time", 0) > since)
    open_s = 0.0
    for folder in _folders_of(owner):
        ticket, now = read_ticket(folder), read_status(folder)
        if max(now.heartbeat, ticket.asked) > since:
            open_s += max(0.0, now.elapsed_s - ticket.elapsed_s)
    return settled + open_s


def _folders_of(owner: str) -> Iterator[Path]:
    root = runs_folder()
    return (root / run_id for run_id in run_ids(root) if read_ticket(root / run_id).owner == owner)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # replaced or removed in this moment
            continue
    return total


def _number(name: str) -> float | None:
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
