"""A trainer is a process of its own: killed, asked to pause, dead, never born, or one of several at work."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
from tiny_runs import create, losses, wait_until

from transformer.checkpoints.settings import read_settings
from transformer.runs import run_folder
from transformer.runs.launch import NICENESS
from transformer.runs.run_lock import claim, threads_for, usable_cpus
from transformer.runs.status import RunError, Status, is_alive, status, write_status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("room")]


@pytest.fixture
def children():
    """Ids of runs whose trainers are ended after the test, come what may."""
    started = []
    yield started
    for run_id in started:
        pid = status(run_id).pid
        if status(run_id).active and pid is not None:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_detached_run_killed_without_warning_resumes_bit_equal(children):
    whole, killed = create(max_steps=400), create(max_steps=400)
    train_run(whole)
    children.append(killed)
    run_folder.start(killed)
    with pytest.raises(RunError, match=r"is already (queued|running)"):
        run_folder.start(killed)
    with pytest.raises(RunError, match="is still training; stop it first"):
        run_folder.delete(killed)
    wait_until(lambda: status(killed).step >= 20 and status(killed).pid, "the first steps")
    os.kill(status(killed).pid, signal.SIGKILL)
    wait_until(lambda: not status(killed).active, "the end of the process")
    dead = status(killed)
    assert dead.state == "failed"
    assert "ended without a message, as when it is killed or memory runs out" in dead.error
    run_folder.resume(killed)
    wait_until(lambda: not status(killed).active, "the end of training")
    assert status(killed).state == "finished"
    assert losses(killed) == losses(whole)


def test_a_run_that_a_trainer_starts_is_no_nicer_than_the_trainer():
    code = "import os; from transformer.runs.launch import lower_priority as low; low(); low(); print(os.nice(0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == max(psutil.Process().nice(), NICENESS)


@pytest.mark.slow
def test_a_detached_run_pauses_on_request_and_stops_later(children):
    run_id = create(max_steps=100_000)
    children.append(run_id)
    run_folder.start(run_id)
    wait_until(lambda: run_folder.metrics(run_id), "the first row")
    assert status(run_id).state == "running"
    process = psutil.Process(status(run_id).pid)
    assert process.nice() == max(psutil.Process().nice(), NICENESS)
    assert os.getsid(process.pid) != os.getsid(0)
    run_folder.pause(run_id)
    wait_until(lambda: status(run_id).state == "paused", "the pause")
    steps = status(run_id).step
    run_folder.resume(run_id)
    wait_until(lambda: status(run_id).state == "running" and status(run_id).step > steps, "further steps")
    os.kill(status(run_id).pid, signal.SIGTERM)
    wait_until(lambda: status(run_id).state == "paused", "the pause after a polite kill")
    assert (folder_of(run_id) / "log.txt").read_text() == ""


def sleeper():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def test_a_process_is_known_by_its_birth_too_and_a_zombie_is_dead():
    process = sleeper()
    born = psutil.Process(process.pid).create_time()
    assert is_alive(process.pid, born)
    assert not is_alive(process.pid, born - 100)
    process.kill()
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE, "the zombie")
    assert not is_alive(process.pid, born)
    process.wait()
    assert not is_alive(process.pid, born)


def test_a_process_is_known_after_the_clock_was_set(monkeypatch):
    me = psutil.Process()
    born, booted = me.create_time(), psutil.boot_time()
    for step in (3600.0, -3600.0):
        monkeypatch.setattr(psutil.Process, "create_time", lambda self, step=step: born + step)
        monkeypatch.setattr(psutil, "boot_time", lambda step=step: booted + step)
        assert is_alive(me.pid, born, booted)
        assert not is_alive(me.pid, born - 100, booted)


def test_a_run_whose_lock_is_held_lives_whatever_the_clock_says(room):
    run_id = create()
    born = psutil.Process().create_time()
    claimed = claim(run_id)
    write_status(room / run_id, Status(state="running", step=7, pid=os.getpid(), create_time=born - 3600))
    assert status(run_id).state == "running"
    with pytest.raises(RunError, match="is still training; stop it first"):
        run_folder.delete(run_id)
    run_folder.pause(run_id)
    assert (room / run_id / "request.json").is_file()
    os.close(claimed.lock)
    assert status(run_id).state == "failed"
    os.close(claim(run_id).lock)


def test_a_dead_trainers_last_words_are_passed_on(room):
    run_id = create()
    write_status(room / run_id, Status(state="running", step=7, pid=2**22 - 1, create_time=1.0))
    (room / run_id / "log.txt").write_text("Fatal Python error: Segmentation fault\n\n")
    assert status(run_id).error.endswith("; its log ends with: Fatal Python error: Segmentation fault")
    assert status(run_id).step == 7


def test_a_trainer_that_never_came_up_is_noticed_at_once(room):
    run_id = create()
    claimed = claim(run_id)
    assert status(run_id).active
    os.close(claimed.lock)  # as when whoever was about to start it is killed
    assert status(run_id).state == "failed"
    assert "the trainer did not start" in status(run_id).error
    os.close(claim(run_id).lock)


def test_with_another_run_at_work_a_new_one_gets_one_thread(room):
    first, second = create(threads=None), create(threads=None)
    made = read_settings(room / second)
    assert threads_for(second, made) == usable_cpus()
    write_status(room / first, Status(state="running", pid=os.getpid()))
    assert threads_for(second, made) == 1
    asked = replace(made, train=replace(made.train, threads=3))
    assert threads_for(second, asked) == 3


def test_watching_does_not_import_torch():
    code = (
        "import sys; from transformer.runs import run_folder; run_folder.list_runs(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
