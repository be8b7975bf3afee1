"""The process from which test_kill.py has its servers and trainers forked: it has imported everything, once.

    PYTHONPATH=.:tests python tests/kill_forks.py FOLDER    (the name of a run on each line of standard input)

Each line forks a server, which makes the run of that name where there is none, starts it and watches it. The server
forks the trainer, as the warm worker would. Both write their process id into FOLDER.
"""

import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tiny_runs import MODEL, settings

from transformer.config import CorpusConfig
from transformer.data import corpora
from transformer.data.corpus_cache import prepared
from transformer.runs import queue, run_folder, worker
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
    def launch(run: Path, threads: int, lock: int) -> None:
        _fork("trainer", folder, partial(_train, run, threads, lock))

    queue.launch = launch
    parent = os.getppid()
    if name not in {run.id for run in run_folder.list_runs()}:
        train = settings(max_steps=STEPS, evaluate_every=10, evaluate_pairs=4, test_pairs=4)
        assert run_folder.create_run(MODEL, train, CORPUS, pinned=["a b c"], name=name) == name
    queue.start_waiting()
    if not status(name).active and status(name).state != "finished":
        run_folder.resume(name)
    while os.getppid() == parent:  # nothing stays behind where the test itself is killed
        run_folder.list_runs()
        time.sleep(0.02)


def _train(run: Path, threads: int, lock: int) -> None:
    os.setsid()
    worker.train_claimed(run, threads, lock)


def _fork(who: str, folder: Path, work: Callable[[], None]) -> None:
    if os.fork() == 0:
        with contextlib.suppress(BaseException):
            new = folder / f"{who}.new"
            new.write_text(str(os.getpid()))
            new.replace(folder / who)
            work()
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
