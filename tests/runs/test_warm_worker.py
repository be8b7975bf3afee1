"""The warm worker: trainers forked from it are like any other, it harms nobody by dying, and it never stays behind."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from tiny_runs import PATIENCE_S, create, losses, wait_until

from transformer import locks
from transformer.runs import launch, run_folder
from transformer.runs.launch import NICENESS, SWITCH, WarmWorker
from transformer.runs.status import LOCK_FILE, is_alive, status
from transformer.runs.worker import train_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
    pytest.mark.usefixtures("room"),
]  # most cases start a process that imports torch

SAYS_READY = "import socket, sys, time; line = socket.socket(fileno=0); line.send(b'ready'); "


@pytest.fixture
def workers(monkeypatch):
    """Makes warm workers; the last one is the app's, and none is left afterwards."""
    made = []

    def make(code=None):
        made.append(WarmWorker(*([(sys.executable, "-c", SAYS_READY + code)] if code is not None else [])))
        monkeypatch.setattr(launch, "WARM", made[-1])
        made[-1].keep()
        assert made[-1].is_ready(PATIENCE_S)
        return made[-1]

    yield make
    for worker in made:
        worker.end()


@pytest.fixture
def cold(monkeypatch):
    """The runs that would have been started by a new interpreter."""
    started = []
    monkeypatch.setattr(launch, "_launch_cold", lambda folder, threads, lock: started.append(folder.name))
    return started


def test_trainers_forked_from_it_train_like_any_other_and_outlive_it(workers, cold, room):
    worker = workers()
    whole, forked, long = create(max_steps=30), create(max_steps=30), create(max_steps=100_000)
    train_run(whole)
    run_folder.start(forked)
    wait_until(lambda: not status(forked).active, "the end of training")
    assert status(forked).state == "finished"
    assert losses(forked) == losses(whole)
    assert (room / forked / "log.txt").read_text() == ""

    run_folder.start(long)
    wait_until(lambda: run_folder.metrics(long), "the first row")
    trainer = psutil.Process(status(long).pid)
    try:
        assert os.getsid(trainer.pid) == trainer.pid
        assert trainer.nice() == max(psutil.Process().nice(), NICENESS)
        assert locks.is_held(room / long / LOCK_FILE)
        worker.end()
        step = run_folder.metrics(long)[-1]["step"]
        wait_until(lambda: run_folder.metrics(long)[-1]["step"] > step, "steps without the warm worker")
    finally:
        trainer.kill()
    wait_until(lambda: status(long).state == "failed", "the word that the trainer is dead")
    assert not locks.is_held(room / long / LOCK_FILE)
    assert cold == []


def test_it_ends_when_its_server_is_killed():
    code = (
        "from transformer.runs.launch import WARM; import time; "
        "WARM.keep(); print(WARM.pid(), flush=True); time.sleep(99)"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    try:
        assert is_alive(pid, None)
        server.send_signal(signal.SIGKILL)
        server.communicate()
        wait_until(lambda: not is_alive(pid, None), "the end of the orphan")
    finally:
        server.kill()


@pytest.mark.parametrize("dies", ["sys.exit()", "line.recv(9999); sys.exit()", "line.close(); time.sleep(99)"])
def test_where_it_has_died_a_trainer_starts_cold(workers, cold, dies):
    workers(dies)
    run_id = create()
    run_folder.start(run_id)
    assert cold == [run_id]


def test_one_that_does_not_answer_is_given_up_and_trains_nothing_later(workers, cold, room, monkeypatch):
    monkeypatch.setattr(launch, "REPLY_LIMIT_S", 0.05)
    worker = workers("time.sleep(99)")
    pid, run_id = worker.pid(), create()
    run_folder.start(run_id)
    assert cold == [run_id]
    assert not is_alive(pid, None)
    assert not locks.is_held(room / run_id / LOCK_FILE)  # nor is a copy of the lock left anywhere


def test_before_it_is_ready_nobody_waits_for_it(cold, monkeypatch):
    worker = WarmWorker((sys.executable, "-c", "import time; time.sleep(99)"))
    monkeypatch.setattr(launch, "WARM", worker)
    worker.keep()
    try:
        run_id = create()
        run_folder.start(run_id)
        assert cold == [run_id]
    finally:
        worker.end()


def test_one_that_died_is_replaced_but_not_over_and_over(workers, monkeypatch):
    worker = workers("sys.exit()")
    wait_until(lambda: worker.pid() is None, "its end")
    worker.keep()
    assert worker.pid() is None
    monkeypatch.setattr(launch, "RESTART_S", 0.0)
    worker.keep()
    assert worker.is_ready(PATIENCE_S)


@pytest.mark.parametrize("word", ["off", "0", "No"])
def test_it_can_be_switched_off(monkeypatch, word):
    monkeypatch.setenv(SWITCH, word)
    worker = WarmWorker()
    worker.keep()
    assert worker.pid() is None
