"""The memory and the cores that this server may use, and what it makes of them unless a setting says otherwise."""

import os
import sys
from pathlib import Path

import psutil

CACHE_MB = "ATTENTION_LAB_CACHE_MB"
"""The setting for the megabytes of results that are held for all visitors."""
MAX_SESSIONS = "ATTENTION_LAB_MAX_SESSIONS"
"""The setting for the sessions that are let in at a time."""
_PROC, _CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def memory_bytes() -> int:
    """Returns the bytes of memory of this machine, or of the container or unit that the server runs in."""
    found = [psutil.virtual_memory().total]
    for limit in _limit_files():
        try:
            found.append(int(limit.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(found)


def _limit_files() -> list[Path]:
    """Returns the files that may hold a limit of memory for this process: its control group's, and those above it."""
    try:
        own = next(line.removeprefix("0::") for line in _PROC.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return []
    folder = _CGROUPS / own.strip("/")
    return [each / "memory.max" for each in (folder, *folder.parents) if each.is_relative_to(_CGROUPS)]


def cores() -> int:
    """Returns the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_bytes() -> int:
    """Returns the bytes of results to hold: an eighth of the memory, 1 GB at most, if no setting says more."""
    return setting(CACHE_MB, default=min(1_000, memory_bytes() // 8_000_000)) * 1_000_000


def setting(name: str, default: int) -> int:
    """Returns the whole number in an environment variable, the default where it is empty; ValueError for another."""
    text = os.environ.get(name, "").strip()
    if not text:
        return max(1, default)
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name} ({text!r}) must be a whole number of at least 1, or not be set")
    return int(text)


def check_settings() -> None:
    """Ends the process with a sentence where a setting of the server is no number."""
    try:
        for name in (CACHE_MB, MAX_SESSIONS):
            setting(name, default=1)
    except ValueError as error:
        sys.exit(f"error: {error}")
