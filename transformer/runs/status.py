"""The files between a trainer and its watchers: status.json and metrics.jsonl one way, request.json the other.

No torch here, and nothing that is slow to import: watching must be quick.
"""

import contextlib
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

import psutil

from transformer.access.ownership import may_see, refusal, visible
from transformer.checkpoints.metric_rows import is_count, is_number
from transformer.checkpoints.settings import METRICS_FILE, is_name
from transformer.files import append_rows, read_json, runs_folder, write_json
from transformer.locks import is_held

State = Literal["queued", "running", "paused", "stopped", "finished", "failed"]
Request = Literal["pause", "stop"]

STATUS_FILE = "status.json"
REQUEST_FILE = "request.json"
LOG_FILE = "log.txt"
STATE_FILE = "state/state.safetensors"
SNAPSHOTS = "snapshots"
LOCK_FILE = ".lock"
"""Held by whoever starts or trains the run, for as long as they live."""
_LEAST_BYTES = 65_536
WAITING = "waiting"
"""The phase of a run that waits in the queue."""


FLUSH_S = 0.2
"""Rows of metrics are written in groups at least this far apart."""
HEARTBEAT_S = 1.0
QUOTA_CHECK_S = 5.0


class RunError(Exception):
    """A run cannot be made, found or do what was asked; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """The status of a run as its folder and process tell it."""

    state: State
    step: int = 0
    elapsed_s: float = 0.0
    """Seconds of training, pauses not included."""
    phase: str = ""
    """The phase of a queued or running trainer: "waiting", "starting", "training", "scoring held-out pairs"."""
    reason: str = ""
    """Why it ended: a reason of training.Finished, "asked", or the sentence of a quota that is used up."""
    error: str = ""
    """One sentence where it failed."""
    heartbeat: float = 0.0
    """Unix time of the last sign of life."""
    pid: int | None = None
    create_time: float | None = None
    """psutil's; a pid alone may by now be another process's."""
    boot_time: float | None = None
    """psutil's as `create_time` was read: their difference stays the same when the system clock is set."""

    @property
    def active(self) -> bool:
        """Tells whether a trainer works on it, is starting, or will start when it is its turn."""
        return self.state == "running" or (self.state == "queued" and self.phase != "")

    @property
    def waiting(self) -> bool:
        """Tells whether it waits in the queue."""
        return self.state == "queued" and self.phase == WAITING


def status(run_id: str) -> Status:
    """Returns the status of the run, even if its process died silently; raises RunError if there is no such run."""
    return status_of(run_folder(run_id))


def status_of(folder: Path) -> Status:
    """Returns the status of the run in a folder, even if its process died silently."""
    written = read_status(folder)
    if not written.active or written.waiting or _has_process(folder, written):
        return written
    again = read_status(folder)
    if again != written:  # it ended well, or somebody started it anew, between the two looks
        return status_of(folder)
    said = _last_words(folder)
    return replace(again, state="failed", phase="", error=said if again.pid else f"the trainer did not start; {said}")


def is_pid(value: object) -> TypeGuard[int]:
    """Tells whether a process can have this number."""
    return type(value) is int and 0 < value < _MAX_PID


def is_alive(pid: int, create_time: float | None, boot_time: float | None = None) -> bool:
    """Tells whether this very process is alive: the same pid, born at the same time, and no zombie.

    Given the `boot_time` that was noted with `create_time`, the system clock may have been set since.
    """
    try:
        process = psutil.Process(pid)
        clock_set_s = 0.0 if boot_time is None else psutil.boot_time() - boot_time
        same = create_time is None or abs(process.create_time() - create_time - clock_set_s) < 1.0
        return same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def run_folder(run_id: str) -> Path:
    """The folder of a run that one may look at; RunError listing those there are if it does not exist."""
    folder = runs_folder() / run_id
    if not is_name(run_id) or not (folder / STATUS_FILE).is_file() or not may_see(folder):
        names = [seen.name for seen in visible(runs_folder() / name for name in run_ids(runs_folder()))]
        raise RunError(f"there is no run {run_id!r}; the runs here are: {', '.join(names) or 'none'}")
    return folder


def own_folder(run_id: str, act: str = "change it") -> Path:
    """The folder of a run that one may change; RunError for one that is somebody else's, or as `run_folder`."""
    folder = run_folder(run_id)
    check_own(folder, act)
    return folder


def check_own(folder: Path, act: str) -> None:
    """RunError where the person may not do to the run in this folder what only its owner does, such as "download
    it"."""
    if why := refusal(folder, act):
        raise RunError(why)


def check_runs_folder() -> None:
    """RunError where the runs are to be kept in something that is not a folder."""
    root = runs_folder()
    if root.exists() and not root.is_dir():
        raise RunError(f"runs are kept in {root}, which is a file: let ATTENTION_LAB_RUNS name a folder")


@contextlib.contextmanager
def writing_to(run_id: str) -> Iterator[None]:
    """Turns an error of the file system, as of a read-only folder, into a RunError that names the run."""
    try:
        yield
    except OSError as error:
        why = f"{runs_folder() / run_id} cannot be written to ({error.strerror or error})"
        raise RunError(f"{run_id} cannot be changed: {why}") from error


def write_status(folder: Path, now: Status) -> None:
    """Replaces status.json."""
    write_json(folder / STATUS_FILE, asdict(now))


def run_ids(root: Path) -> list[str]:
    """The runs in a folder, by name."""
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if is_name(path.name) and (path / STATUS_FILE).is_file())


def read_status(folder: Path) -> Status:
    """Reads status.json, whatever became of the process."""
    content = read_json(folder / STATUS_FILE)
    if not content:
        return Status(state="failed", error=f"{STATUS_FILE} cannot be read")
    known = {item.name: content[item.name] for item in fields(Status) if item.name in content}
    wrong = next((name for name, holds in _FORMS.items() if not holds(known.get(name, _DEFAULTS[name]))), None)
    if wrong is not None:
        said = f"{STATUS_FILE} is damaged: its {wrong} is {str(known.get(wrong, 'missing'))[:40]!r}"
        return Status(state="failed", error=said)
    return Status(**known)


def _is_finite(value: Any) -> bool:
    return is_number(value) and abs(value) < math.inf  # NaN is not below anything


_MAX_PID = 2**31
_DEFAULTS: dict[str, Any] = {item.name: item.default for item in fields(Status)}
_FORMS: dict[str, Callable[[Any], bool]] = {
    "state": lambda value: isinstance(value, str) and value in get_args(State),
    "step": is_count,
    "elapsed_s": _is_finite,
    **dict.fromkeys(("phase", "reason", "error"), lambda value: isinstance(value, str)),
    "heartbeat": _is_finite,
    "pid": lambda value: value is None or is_pid(value),
    **dict.fromkeys(("create_time", "boot_time"), lambda value: value is None or _is_finite(value)),
}
"""The values that each field of status.json may hold."""


def _has_process(folder: Path, active: Status) -> bool:
    if is_held(folder / LOCK_FILE):
        return True
    running, pid = active.state == "running", active.pid
    return running and pid is not None and is_alive(pid, active.create_time, active.boot_time)


def _last_words(folder: Path) -> str:
    """Describes the end of a trainer that could not say why it ended."""
    try:
        lines = (folder / LOG_FILE).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    said = f"; its log ends with: {last[:200]}" if last else ""
    if _is_full(folder):
        return f"the disk is full: free some space, then resume from the last saved state{said}"
    return f"the trainer ended without a message, as when it is killed or memory runs out{said}"


def _is_full(folder: Path) -> bool:
    """Tells whether the disk has no room left even for a status."""
    try:
        return shutil.disk_usage(folder).free < _LEAST_BYTES
    except OSError:
        return False


def request_to(folder: Path) -> Request | None:
    """Returns what the trainer of the run in a folder is asked to do, until it has done it."""
    path = folder / REQUEST_FILE
    asked = read_json(path).get("request") if path.exists() else None
    return asked if asked in ("pause", "stop") else None


def forget_request(folder: Path) -> None:
    """Removes what a trainer that begins or ends was asked to do."""
    (folder / REQUEST_FILE).unlink(missing_ok=True)


@dataclass
class RunLog:
    """The trainer's end of these files."""

    folder: Path
    status: Status
    asked: Request | None = None
    over_quota: Callable[[], str] = str
    """Returns why the run must pause although nobody asked; empty where it need not."""
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
        """Returns the request once there is one. A quota that is used up asks too."""
        self.asked = self.asked or request_to(self.folder)
        if self.asked is None and time.monotonic() - self._counted > QUOTA_CHECK_S:
            self._counted = time.monotonic()
            if said := self.over_quota():
                self.asked, self.status = "pause", replace(self.status, reason=said)
        return self.asked
