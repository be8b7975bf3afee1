"""The right to train a run: one process at a time has it, and with it the lock that the system lifts when it ends."""

import os
import time
from dataclasses import dataclass, replace

from transformer import locks
from transformer.checkpoints.settings import Settings, read_settings
from transformer.files import runs_folder
from transformer.runs.status import (
    LOCK_FILE,
    RunError,
    Status,
    forget_request,
    read_status,
    run_folder,
    run_ids,
    status,
    write_status,
)

PATIENCE_S = 3.0
"""The seconds a trainer that has written its last status may take to close its files."""


@dataclass(frozen=True)
class Claim:
    """A run that is about to be trained."""

    threads: int
    lock: int
    """The handle that holds the run's lock: hand it on to the trainer, then close it."""


def claim(run_id: str, *, waiting: bool = False) -> Claim:
    """Marks a run as about to be trained. `waiting`: it is its turn in the queue.

    RunError for a run that is at work, waits in the queue (unless `waiting`), or has finished.
    """
    folder = run_folder(run_id)
    check_startable(run_id, status(run_id), waiting=waiting)
    threads = threads_for(run_id, read_settings(folder))
    lock = locks.take(folder / LOCK_FILE, patience_s=PATIENCE_S)
    if lock is None:
        raise RunError(f"{run_id} is already being trained by another process")
    try:
        before = read_status(folder)  # nobody else changes it from here on
        if before.active and not before.waiting:  # whoever started or trained it is gone: the lock is ours
            before = replace(before, state="failed", phase="")
        check_startable(run_id, before, waiting=waiting)
        forget_request(folder)
        write_status(
            folder,
            Status(
                state="queued", phase="starting", heartbeat=time.time(), step=before.step, elapsed_s=before.elapsed_s
            ),
        )
    except BaseException:
        os.close(lock)
        raise
    return Claim(threads, lock)


def check_startable(run_id: str, now: Status, *, waiting: bool = False) -> None:
    """RunError for a run that is at work or has finished, or (unless `waiting`) is in the queue."""
    if now.state == "finished":
        raise RunError(f"{run_id} has finished ({now.reason}); start a new run to train longer")
    if now.waiting and not waiting:
        raise RunError(f"{run_id} is already queued")
    if waiting and not now.waiting:
        raise RunError(f"{run_id} no longer waits: it is {now.state}")
    if now.active and not now.waiting:
        raise RunError(f"{run_id} is already {now.state}")


def threads_for(run_id: str, settings: Settings) -> int:
    """Returns the threads chosen at the first start; else those asked for; else all CPUs, or one beside another run."""
    if settings.resolved is not None:
        return settings.resolved.threads
    root = runs_folder()
    others = any(
        read_status(root / other).active and status(other).active for other in run_ids(root) if other != run_id
    )
    return settings.train.threads or (1 if others else usable_cpus())


def usable_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
