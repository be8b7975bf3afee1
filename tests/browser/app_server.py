"""The app as a process of its own, for the browser tests."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psutil

ROOT = Path(__file__).parents[2]
START_LIMIT_S = 90.0


@dataclass(frozen=True)
class Server:
    """A running app of its own, with its own folder of runs."""

    url: str
    runs: Path
    pid: int
    """The process id of the server, which leads its own process group."""

    def link(self, page: str = "", **parameters: object) -> str:
        """The address of a page with query parameters."""
        return f"{self.url}/{page}{'?' * bool(parameters)}{urlencode(parameters, doseq=True)}"


@contextlib.contextmanager
def running_app(
    runs: Path,
    log: Path,
    *,
    base: str = "",
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    as_user: Sequence[str] = (),
    port: int = 0,
    listens_to: str = "",
) -> Iterator[Server]:
    """The app as `make app` starts it; it and the trainers it started are gone afterwards.

    It listens on a free port unless one is given. `base` is a base path such as "/lab"; `as_user` a command before it
    that changes the user, `listens_to` the address of a network instead of this machine's own.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", "serve.py", f"--server.port={port}", "--server.headless=true"]
    command += [f"--server.baseUrlPath={base.strip('/')}"] if base else []
    command += [f"--server.address={listens_to}"] if listens_to else []
    address = f"http://127.0.0.1:{port}{base}"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*as_user, *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {}), "ATTENTION_LAB_RUNS": str(runs)},
        )
    try:
        _wait_until_healthy(process, address, log)
        yield Server(address, runs, process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _end_trainers(runs)


def free_port() -> int:
    """Returns a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_healthy(process: subprocess.Popen, url: str, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        time.sleep(0.1)
    raise RuntimeError(f"the app did not start:\n{log.read_text()[-3000:]}")


def _end_trainers(runs: Path) -> None:
    """Ends the detached trainers of these runs, each known by its process id and its time of birth."""
    for path in runs.glob("*/status.json"):
        status = json.loads(path.read_text())
        with contextlib.suppress(psutil.NoSuchProcess):
            trainer = psutil.Process(status.get("pid") or 0)
            if trainer.pid not in (0, os.getpid()) and trainer.create_time() == status.get("create_time"):
                trainer.kill()
