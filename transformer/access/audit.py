"""The audit log: what visitors and teachers did to runs, a line of JSON for each deed, never changed afterwards."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer.access.ownership import owner_of
from transformer.access.people import acting
from transformer.access.server_settings import identity
from transformer.files import append_rows, read_rows, runs_folder

AUDIT_FILE = ".audit.jsonl"


def record(did: str, folder: Path | None = None, **more: object) -> None:
    """Appends a deed to the log of a server with several visitors: who, as what, did what, to whose run."""
    if identity().is_one_person:
        return
    person = acting()
    owner = owner_of(folder) if folder is not None else ""
    row = {"time": round(time.time(), 3), "who": person.id or "operator", "did": did, **more}
    row["as"] = "owner" if person.id and owner == person.id else "teacher" if person.is_teacher else "visitor"
    if folder is not None:
        row |= {"run": folder.name, "owner": owner}
    append_rows(runs_folder() / AUDIT_FILE, [row])


def latest(count: int) -> Sequence[dict[str, Any]]:
    """Returns the newest rows of the log, the last deed first."""
    return read_rows(runs_folder() / AUDIT_FILE)[: -count - 1 : -1]
