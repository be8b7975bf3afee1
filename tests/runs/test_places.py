"""Places in the queue for work that is no run: it waits as runs do, and runs wait for it."""

import os
import subprocess
import sys
import time

import pytest
from tiny_runs import MODEL, settings

from transformer.config import CorpusConfig
from transformer.data import corpora
from transformer.files import write_json
from transformer.runs import queue, run_folder
from transformer.runs.limits.places import PLACE, places
from transformer.runs.limits.quota import MINUTES
from transformer.runs.queue import place_at_work, start_waiting, working_at_once
from transformer.runs.status import RunError, Status, read_status, status, write_status


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """An empty folder of runs, in which one may be at work at a time."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv(queue.LIMIT, "1")
    monkeypatch.setattr(queue, "_LOOK_S", 0.01)
    monkeypatch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
    return tmp_path / "runs"


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """The runs that were started: in place of a trainer, this test's parent is said to work on them."""
    order = []

    def launch(folder, threads, lock):
        order.append(folder.name)
        write_status(folder, Status(state="running", phase="training", pid=os.getppid()))

    monkeypatch.setattr(queue, "launch", launch)
    return order


def start(name):
    run_folder.start(run_folder.create_run(MODEL, settings(), CorpusConfig(name="reverse"), name=name))


def test_a_training_waits_for_an_experiment_that_is_at_work(launched):
    with working_at_once():
        start("a")
        assert status("a").waiting and launched == [] and run_folder.get_run("a").place == 1
    assert launched == ["a"]  # as soon as the experiment is over


def test_an_experiment_waits_for_a_training_and_its_turn(room, launched):
    start("a")
    waited = []

    def end_the_training_after_a_while():
        waited.append(len(list(places())))
        if len(waited) == 1:
            start("b")  # asked for later
        if len(waited) == 2:
            write_status(room / "a", Status(state="finished"))

    with place_at_work(end_the_training_after_a_while) as (place, _):
        assert waited == [1, 1] and launched == ["a"] and status("b").waiting
        assert list(place) == [PLACE]
    assert launched == ["a", "b"] and not list(places())


def test_a_run_that_the_experiment_itself_trains_takes_no_second_place(room, launched, monkeypatch):
    monkeypatch.setenv(queue.LIMIT, "2")
    with working_at_once():
        own = run_folder.create_run(MODEL, settings(), CorpusConfig(name="reverse"), name="own")
        write_status(room / own, Status(state="running", phase="training", pid=os.getpid()))
        start("a")
        assert launched == ["a"]  # one place is the experiment's with its run, the other is free
        start("b")
        assert status("b").waiting


def test_a_process_works_in_the_place_of_whoever_started_it(monkeypatch):
    with place_at_work(lambda: None) as (place, _):
        monkeypatch.setenv(PLACE, place[PLACE])
        with working_at_once():
            (only,) = places()
            assert only.pid == os.getpid() and only.granted


def test_the_place_of_a_process_that_was_killed_is_free_again(room, launched):
    code = "from transformer.runs.queue import working_at_once\nwith working_at_once(): print(flush=True); input()"
    held = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert held.stdout is not None and held.stdout.readline()
    start("a")
    assert status("a").waiting
    held.kill()
    held.communicate()
    start_waiting()
    assert launched == ["a"] and not list((room / ".places").iterdir())


def test_who_waits_no_longer_leaves_the_queue(launched):
    start("a")

    def give_up():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), place_at_work(give_up):
        raise AssertionError("there is no room")
    assert not list(places())


def test_a_used_up_quota_refuses_a_place(monkeypatch, room):
    from transformer.access.people import Person, acting_as

    monkeypatch.setenv(MINUTES, "1")
    with acting_as(Person(id="ada")):
        run_id = run_folder.create_run(MODEL, settings(), CorpusConfig(name="reverse"), name="a")
        write_json(room / run_id / "ticket.json", {"owner": "ada", "asked": time.time(), "elapsed_s": 0})
        write_status(room / run_id, Status(state="finished", elapsed_s=61.0, heartbeat=time.time()))
        assert read_status(room / run_id).elapsed_s == 61.0
        with pytest.raises(RunError, match="go on later"), place_at_work(lambda: None):
            raise AssertionError("it is used up")
