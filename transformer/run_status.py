"""How a run is doing, as far as its folder and its process tell: status.json, read, checked and written.

No torch here, and nothing that is slow to import: watching must be quick.
"""

import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal

import psutil

from transformer.files import read_json, write_json
from transformer.settings import is_name, runs_folder

State = Literal["queued", "running", "paused", "stopped", "finished", "failed"]
Request = Literal["pause", "stop"]

STATUS_FILE = "status.json"
REQUEST_FILE = "request.json"
LOG_FILE = "log.txt"
STATE_FILE = "state/state.safetensors"
SNAPSHOTS = "snapshots"
START_LIMIT_S = 60.0
"""A run that is queued for longer without a process has failed to start."""


class RunError(Exception):
    """A run cannot be made, found or do what was asked; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """How a run is doing, as far as its folder and its process tell."""

    state: State
    step: int = 0
    elapsed_s: float = 0.0
    """Seconds of training, pauses not included."""
    phase: str = ""
    """What a queued or running trainer is at: "starting", "training", "scoring held-out pairs"."""
    reason: str = ""
    """Why it ended: a reason of training.Finished, or "asked"."""
    error: str = ""
    """One sentence where it failed."""
    heartbeat: float = 0.0
    """Unix time of the last sign of life."""
    pid: int | None = None
    create_time: float | None = None
    """psutil's; a pid alone may by now be another process's."""

    @property
    def active(self) -> bool:
        """Whether a trainer works on it, or has been started and is about to."""
        return self.state == "running" or (self.state == "queued" and self.phase != "")


def status(run_id: str) -> Status:
    """How the run is doing, also where its process died without a word. RunError for no such run."""
    folder = run_folder(run_id)
    written = _read_status(folder)
    if not written.active:
        return written
    if written.pid is not None:
        if is_alive(written.pid, written.create_time):
            return written
        again = _read_status(folder)  # it may have ended well between the two looks
        return replace(again, state="failed", error=_last_words(folder)) if again.active else again
    if time.time() - written.heartbeat > START_LIMIT_S:
        return replace(written, state="failed", error=f"the trainer did not start. {_last_words(folder)}")
    return written


def is_alive(pid: int, create_time: float | None) -> bool:
    """Whether this very process still works: the same pid, born at the same time, and no zombie."""
    try:
        process = psutil.Process(pid)
        same = create_time is None or abs(process.create_time() - create_time) < 1.0
        return same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def run_folder(run_id: str) -> Path:
    """The folder of a run; RunError listing the runs there are if it does not exist."""
    folder = runs_folder() / run_id
    if not is_name(run_id) or not (folder / STATUS_FILE).is_file():
        raise RunError(f"there is no run {run_id!r}; the runs here are: {', '.join(run_ids(runs_folder())) or 'none'}")
    return folder


def write_status(folder: Path, now: Status) -> None:
    """Replaces status.json."""
    write_json(folder / STATUS_FILE, asdict(now))


def run_ids(root: Path) -> list[str]:
    """The runs in a folder, by name."""
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if is_name(path.name) and (path / STATUS_FILE).is_file())


def _read_status(folder: Path) -> Status:
    names = {item.name for item in fields(Status)}
    try:
        return Status(**{name: value for name, value in read_json(folder / STATUS_FILE).items() if name in names})
    except TypeError:
        return Status(state="failed", error=f"{STATUS_FILE} cannot be read")


def _last_words(folder: Path) -> str:
    """What is known of a trainer that could not say why it ended."""
    try:
        lines = (folder / LOG_FILE).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    said = f"; its log ends with: {last[:200]}" if last else ""
    return f"the trainer ended without a word, as when it is killed or memory runs out{said}"
