"""What a trainer tells its watchers (status.json, metrics.jsonl), and what they ask of it (request.json)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transformer.checkpoints.settings import METRICS_FILE
from transformer.files import append_rows, read_json
from transformer.runs.status import REQUEST_FILE, Request, Status, write_status

FLUSH_S = 0.2
"""Rows of metrics are written in groups at least this far apart."""
HEARTBEAT_S = 1.0
QUOTA_CHECK_S = 5.0


@dataclass
class RunLog:
    """The trainer's end of a run's folder."""

    folder: Path
    status: Status
    asked: Request | None = None
    over_quota: Callable[[], str] = str
    """Why the run must pause although nobody asked; empty where it need not."""
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _flushed: float = 0.0
    _said: float = 0.0
    _counted: float = field(default_factory=time.monotonic)

    def add(self, split: str, row: dict[str, Any]) -> None:
        """Notes a row of metrics; the first step and every evaluation are written at once."""
        self._rows.append({"split": split} | row)
        if split != "train" or row["step"] == 1 or time.monotonic() - self._flushed > FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Writes the rows noted since the last time."""
        if self._rows:
            append_rows(self.folder / METRICS_FILE, self._rows)
        self._rows, self._flushed = [], time.monotonic()

    def beat(self, **changes: Any) -> None:
        """Notes changes of the status; they are written with the next heartbeat."""
        self.status = replace(self.status, **changes)
        if time.monotonic() - self._said > HEARTBEAT_S:
            self.say()

    def say(self, **changes: Any) -> None:
        """Writes the status with these changes now."""
        self._said = time.monotonic()
        self.status = replace(self.status, heartbeat=time.time(), **changes)
        write_status(self.folder, self.status)

    def request(self) -> Request | None:
        """What has been asked, once it has; the request is taken off the folder. A quota that is used up asks too."""
        path = self.folder / REQUEST_FILE
        if self.asked is None and path.exists():
            asked = read_json(path).get("request")
            self.asked = asked if asked in ("pause", "stop") else None
            path.unlink(missing_ok=True)
        if self.asked is None and time.monotonic() - self._counted > QUOTA_CHECK_S:
            self._counted = time.monotonic()
            if said := self.over_quota():
                self.asked, self.status = "pause", replace(self.status, reason=said)
        return self.asked
