"""Starts the process of a trainer: a fork of the warm worker if there is one, else a new interpreter."""

import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.files import runs_folder
from transformer.runs.status import LOG_FILE

SWITCH = "ATTENTION_LAB_WARM_WORKER"
"""Set to "off", no process is kept warm: that saves its memory, about 300 MB, and costs each start a second or two."""
REPLY_LIMIT_S = 3.0
"""A warm worker that does not fork within this time is given up."""
READY = b"ready"
"""The message of a warm worker that has imported everything."""
NICENESS = 10
"""The niceness of trainers: pages stay quick (p95 41 ms beside one, 102 ms beside a trainer in the server)."""
COMMAND = (sys.executable, "-m", "transformer.runs.warm_worker")
RESTART_S = 60.0
"""A warm worker that died is replaced at most this often."""


def lower_priority() -> None:
    """Gives this process the niceness of trainers. One that a trainer started, as its last act, has inherited it."""
    with contextlib.suppress(AttributeError, OSError):
        os.nice(max(0, NICENESS - os.nice(0)))


def launch(folder: Path, threads: int, lock: int) -> None:
    """Starts the trainer of a run in a process of its own, which from then on holds the run's lock.

    The caller still closes its own handle. OSError where no process can be started.
    """
    if not WARM.fork(folder, threads, lock):
        _launch_cold(folder, threads, lock)


def _launch_cold(folder: Path, threads: int, lock: int) -> None:
    with (folder / LOG_FILE).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "transformer.runs.worker", str(folder.resolve()), str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
            env=_environment(threads),
        )
    # Reaped by a thread: a trainer that ended must not stay behind as a zombie of the server.
    threading.Thread(target=process.wait, name=f"reaper of {folder.name}", daemon=True).start()


class WarmWorker:
    """This process's end of its warm worker, if it keeps one. Threads may share it."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._ready = False
        self._started = -math.inf

    def keep(self) -> None:
        """Starts it where there is none and it is wanted; quick, and harmless to repeat."""
        with self._guard:
            alive = self._process is not None and self._process.poll() is None
            if alive or not is_wanted() or time.monotonic() - self._started < RESTART_S:
                return
            self._end()
            self._start()

    def pid(self) -> int | None:
        """The process id of the one that is kept; None where there is none."""
        with self._guard:
            return self._process.pid if self._process is not None and self._process.poll() is None else None

    def is_ready(self, patience_s: float = 0.0) -> bool:
        """Tells whether it has imported everything, waiting at most `patience`."""
        with self._guard:
            return self._is_ready(patience_s)

    def fork(self, folder: Path, threads: int, lock: int) -> bool:
        """Tells whether the worker forked into the trainer of this run; False if another way must be found."""
        with self._guard:
            if not self._is_ready() or self._line is None:
                return False
            request = {
                "folder": str(folder.resolve()),
                "log": str(folder.resolve() / LOG_FILE),
                "threads": threads,
                "environment": own_environment(threads),
            }
            try:
                socket.send_fds(self._line, [json.dumps(request).encode()], [lock])
                return self._has_forked(self._line)
            except OSError:
                self._end()
                return False

    def end(self) -> None:
        """Ends it; the trainers that it became go on. `keep` may start another one at once."""
        with self._guard:
            self._end()
            self._started = -math.inf

    def _has_forked(self, line: socket.socket) -> bool:
        line.settimeout(REPLY_LIMIT_S)
        with contextlib.suppress(TimeoutError):
            if line.recv(64):
                return True
            self._end()  # it has died
            return False
        # A fork that has not answered by now must not train: its answer will fail, and then it ends.
        line.shutdown(socket.SHUT_RD)
        line.settimeout(0.0)
        try:
            return bool(line.recv(64))
        finally:
            self._end()

    def _is_ready(self, patience_s: float = 0.0) -> bool:
        if self._line is not None and not self._ready:
            self._line.settimeout(patience_s)
            with contextlib.suppress(OSError):
                self._ready = self._line.recv(64) == READY
        return self._ready

    def _start(self) -> None:
        self._started = time.monotonic()
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=other.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env=_environment(1),
                )
            except OSError:  # without one, trainers start cold
                own.close()
                return
        self._line = own

    def _end(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.kill()
            self._process.wait()
        self._line, self._process, self._ready = None, None, False


WARM = WarmWorker()
"""The one warm worker that this process may keep."""


def is_wanted() -> bool:
    """Tells whether a warm worker is wanted: on Linux, unless it is switched off."""
    return sys.platform == "linux" and os.environ.get(SWITCH, "on").strip().lower() not in ("off", "0", "no", "false")


def own_environment(threads: int) -> dict[str, str]:
    """Returns the variables added to the environment of a training process."""
    return {
        "OMP_NUM_THREADS": str(threads),
        # Two runs on two cores otherwise spin against each other and collapse to 0-1 steps/s.
        "GOMP_SPINCOUNT": "1000",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(SHIPPED_FOLDER.parent), os.environ.get("PYTHONPATH")))),
        "ATTENTION_LAB_RUNS": str(runs_folder().resolve()),
    }


def _environment(threads: int) -> dict[str, str]:
    return os.environ | own_environment(threads)
