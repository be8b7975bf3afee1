"""The trainer of one run: works on its folder until the run ends, pauses, is stopped or fails.

`python -m transformer.runs.worker FOLDER LOCK` is the detached process, and warm_worker.py another way to it;
`train_run` is the same in the foreground. Everything that watchers see is written by status.py and trainer.py.
"""

import contextlib
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from transformer.files import read_json
from transformer.runs.launch import lower_priority
from transformer.runs.limits.quota import over_quota, read_ticket
from transformer.runs.queue import start_waiting
from transformer.runs.run_lock import claim, usable_cpus
from transformer.runs.status import LOG_FILE, STATUS_FILE, RunLog, Status
from transformer.runs.status import run_folder as folder_of

if TYPE_CHECKING:
    from transformer.training.distributed import Team
    from transformer.training.events import Event
    from transformer.training.state import TrainState
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The disk is full, or the system allows no more of it: to this user, or to this file."""

Progress = Callable[["Event"], None]


def train_run(
    run_id: str,
    progress: Progress | None = None,
    team: "Team | None" = None,
    begun: "Callable[[TrainState], object] | None" = None,
) -> Status:
    """Trains a run in this process, in the foreground; returns how it ended. RunError if a trainer is at work on it.

    With a `team`, rank 0 calls this; the other ranks call `train_beside`.

    `progress` sees every event, and `begun` what is trained before its next step. Ctrl-C pauses: `run_folder.start`, or
    this function, goes on from there. It does not wait in the queue, but counts as a run at work for those that do.
    """
    claimed = claim(run_id)
    try:
        return _train(folder_of(run_id), claimed.threads, progress, team, begun)
    finally:
        os.close(claimed.lock)
        start_waiting()


def train_beside(run_id: str, team: "Team") -> None:
    """Runs a non-zero rank of a team until rank 0 stops; writes nothing."""
    from transformer.runs.trainer import follow

    follow(folder_of(run_id), threads=max(1, usable_cpus() // team.size), team=team)


def train_claimed(folder: Path, threads: int, lock: int) -> int:
    """Trains the run in the folder, whose lock this process has been given; the exit status is 0 unless it failed.

    The last act of the process is to start the next run that waits.
    """
    os.set_inheritable(lock, False)
    try:
        failed = _train(folder, threads, None).state == "failed"
    finally:
        os.close(lock)
    start_waiting()
    return int(failed)


def main(arguments: list[str]) -> int:
    """The detached process: FOLDER and the handle of its lock."""
    lower_priority()
    return train_claimed(Path(arguments[0]), int(os.environ["OMP_NUM_THREADS"]), int(arguments[1]))


def _train(
    folder: Path,
    threads: int,
    progress: Progress | None,
    team: "Team | None" = None,
    begun: "Callable[[TrainState], object] | None" = None,
) -> Status:
    before = read_json(folder / STATUS_FILE)
    status = Status(
        state="running",
        phase="starting",
        step=before.get("step", 0),
        elapsed_s=before.get("elapsed_s", 0.0),
        pid=os.getpid(),
        create_time=psutil.Process().create_time(),
        boot_time=psutil.boot_time(),
    )
    owner = read_ticket(folder).owner
    run_log = RunLog(folder, status, over_quota=lambda: over_quota(owner))
    try:
        with _pausing_on_signals(run_log):
            run_log.say()
            # Imports torch, which takes a second: watchers know by now that the trainer is there.
            from transformer.runs.trainer import train
            from transformer.training.distributed import ALONE

            team = team or ALONE
            train(folder, max(1, threads // team.size), run_log, progress or _unheard, team, begun or _unheard)
    except Exception as error:
        _report_failure(run_log, error)
    return run_log.status


def _report_failure(run_log: RunLog, error: Exception) -> None:
    # On a full disk, or without memory, each of these may fail too; watchers then see that the process is gone.
    with contextlib.suppress(Exception), (run_log.folder / LOG_FILE).open("a") as log:
        traceback.print_exception(error, file=log)
    with contextlib.suppress(Exception):
        run_log.flush()
    run_log.status = replace(run_log.status, state="failed", phase="", error=_sentence(error))
    with contextlib.suppress(Exception):
        run_log.say()


def _sentence(error: Exception) -> str:
    kind = type(error).__name__
    text = " ".join(str(error).split())[:300]
    if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
        return f"memory ran out: lower batch_tokens or the model's sizes ({text or kind})"
    if _is_disk_full(error, text):
        return "the disk is full: free some space, then resume from the last saved state"
    if isinstance(error, OSError):
        return f"a file could not be read or written: {text}"
    if kind in ("TrainingError", "CorpusError", "TokenizerError", "CheckpointError", "RunError", "ValueError"):
        return text
    return f"the trainer broke off with {kind}: {text}; {LOG_FILE} in its folder has the details"


def _is_disk_full(error: Exception, text: str) -> bool:
    """Tells whether there was no room for a file; safetensors puts the system's error number into its text."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return any(f"os error {number})" in text for number in _NO_ROOM)


@contextlib.contextmanager
def _pausing_on_signals(run_log: RunLog) -> Iterator[None]:
    """A block in which an interrupt or a polite kill becomes a request to pause."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return

    def ask(*_: object) -> None:
        run_log.asked = run_log.asked or "pause"

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _unheard(event: object) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
