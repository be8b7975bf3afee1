"""The process from which test_kill.py has its servers and trainers forked: it has imported everything, once.

    PYTHONPATH=.:tests python tests/kill_forks.py FOLDER    (the name of a run on each line of standard input)

Each line forks a server, which makes the run of that name where there is none, starts it and watches it. The server
keeps a warm worker, forked too, which forks the trainer; where it is dead, the server forks the trainer itself.
Each of the three writes its process id into FOLDER.
"""

import contextlib
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
from tiny_runs import MODEL, settings

from transformer.config import CorpusConfig
from transformer.data import corpora
from transformer.data.corpus_cache import prepared
from transformer.runs import launch, queue, run_folder, warm_worker, worker
from transformer.runs.status import status
from transformer.runs.warm_worker import import_trainer

CORPUS = CorpusConfig(name="reverse")
STEPS = 60


def main(folder: Path) -> None:
    corpora.TOKENIZER_PAIRS_OF_TASK = 50  # the task names its whole vocabulary anyhow
    import_trainer()  # each fork would import it otherwise
    prepared(CORPUS)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps whoever is killed
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        _fork("server", folder, partial(_serve, line.strip(), folder))


def _serve(name: str, folder: Path) -> None:
    warm = ForkedWorker(folder)

    def start(run: Path, threads: int, lock: int) -> None:
        if not warm.fork(run, threads, lock):
            _fork("trainer", folder, partial(_train, run, threads, lock))

    queue.launch, launch.RESTART_S = start, 0.0
    warm.keep()
    warm.is_ready(10.0)
    parent = os.getppid()
    if name not in {run.id for run in run_folder.list_runs()}:
        train = settings(max_steps=STEPS, evaluate_every=10, evaluate_pairs=4, test_pairs=4)
        assert run_folder.create_run(MODEL, train, CORPUS, pinned=["a b c"], name=name) == name
    queue.start_waiting()
    if not status(name).active and status(name).state != "finished":
        run_folder.resume(name)
    while os.getppid() == parent:  # nothing stays behind where the test itself is killed
        run_folder.list_runs()
        warm.keep()
        time.sleep(0.02)


def _train(run: Path, threads: int, lock: int) -> None:
    os.setsid()
    worker.train_claimed(run, threads, lock)


class Forked:
    """A forked process, with as much of `subprocess.Popen` as a WarmWorker uses. The system reaps it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)

    def poll(self) -> int | None:
        return None if self._process.is_running() else -signal.SIGKILL

    def kill(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self._process.kill()

    def wait(self) -> None:
        self._process.wait()


class ForkedWorker(launch.WarmWorker):
    """The server's end of its warm worker, which is a fork and not a new interpreter."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def _start(self) -> None:
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            pid = _fork("worker", self._folder, partial(self._work, own, other))
        self._line, self._process = own, Forked(pid)  # type: ignore[assignment]

    def _work(self, own: socket.socket, other: socket.socket) -> None:
        own.close()
        os.setsid()
        train = worker.train_claimed

        def train_known(run: Path, threads: int, lock: int) -> int:
            _name("trainer", self._folder)
            return train(run, threads, lock)

        worker.train_claimed = train_known
        other.send(launch.READY)
        warm_worker._serve(other)


def _fork(who: str, folder: Path, work: Callable[[], object]) -> int:
    if (pid := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            _name(who, folder)
            work()
        os._exit(0)
    return pid


def _name(who: str, folder: Path) -> None:
    """Writes this process's id into the folder."""
    new = folder / f"{who}.new"
    new.write_text(str(os.getpid()))
    new.replace(folder / who)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
