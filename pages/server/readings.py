"""Readings of a server for its operator: visitors, queue, memory, disk, errors; for the page and for metrics."""

import time
from collections import Counter
from dataclasses import dataclass

import psutil
from streamlit import runtime

from pages.server.errors import ERRORS
from transformer.access.ownership import UPLOADS
from transformer.access.people import for_the_operator
from transformer.files import free_bytes, runs_folder
from transformer.runs.limits.quota import size_of
from transformer.runs.limits.retention import announced
from transformer.runs.status import run_ids, status_of


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The state of a server at one moment."""

    visitors: int
    """Pages that are open in a browser."""
    runs: dict[str, int]
    """The number of runs by state; "waiting" for those in the queue."""
    to_be_cleared: int
    """Runs and uploads that are announced to be cleared."""
    memory_bytes: int
    """Memory of the server and of the processes that it started."""
    results_bytes: int
    """The part of it that is held as results for all visitors."""
    memory_left_bytes: int
    disk_free_bytes: int
    runs_bytes: int
    uploads_bytes: int
    errors: int
    """Errors that were logged since the server started."""
    up_s: float
    """Seconds since the server started."""


@for_the_operator
def read() -> Readings:
    """Reads the state of this server now."""
    from pages.shared.cache import RESULTS  # which loads torch: not before the server checks its memory

    process, root, now = psutil.Process(), runs_folder(), time.time()
    folders = [root / run_id for run_id in run_ids(root)]
    states = [status_of(folder) for folder in folders]
    return Readings(
        visitors=_visitors(),
        runs=dict(Counter("waiting" if one.waiting else one.state for one in states)),
        to_be_cleared=len(announced(now)),
        memory_bytes=sum(_memory(each) for each in (process, *process.children(recursive=True))),
        results_bytes=RESULTS.bytes,
        memory_left_bytes=psutil.virtual_memory().available,
        disk_free_bytes=free_bytes(),
        runs_bytes=sum(map(size_of, folders)),
        uploads_bytes=size_of(root / UPLOADS),
        errors=ERRORS.count,
        up_s=now - process.create_time(),
    )


def _visitors() -> int:
    # Streamlit counts its sessions, and has no public way to ask. There is no manager under an AppTest.
    manager = getattr(runtime.get_instance(), "_session_mgr", None) if runtime.exists() else None
    return manager.num_active_sessions() if manager else 0


def _memory(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:  # it ended in this moment
        return 0
