"""The queue: so many at once, visitors in turns, cancel, quotas; on disk, for whichever process starts the next one."""

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import MODEL, settings

from transformer.access.people import Person, acting_as
from transformer.config import CorpusConfig
from transformer.data import corpora
from transformer.files import append_rows, read_rows, write_json
from transformer.runs import queue, run_folder, status
from transformer.runs.limits import quota
from transformer.runs.limits.quota import Ticket, check_quota, over_quota, spent_s, used_bytes
from transformer.runs.queue import Waiting, in_order, start_waiting
from transformer.runs.run_lock import usable_cpus
from transformer.runs.status import RunError, Status, read_status, write_status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.status import status as status_of
from transformer.runs.worker import train_run


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """An empty folder of runs, in which one may be at work at a time."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv(queue.LIMIT, "1")
    monkeypatch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)  # the task names its whole vocabulary anyhow
    return tmp_path / "runs"


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """The runs that were started, in their order: in place of a trainer, this process is said to work on them."""
    order = []

    def launch(folder, threads, lock):
        order.append(folder.name)
        write_status(folder, Status(state="running", phase="training", pid=os.getpid(), step=3))

    monkeypatch.setattr(queue, "launch", launch)
    return order


def create(name, **changes):
    return run_folder.create_run(MODEL, settings(**changes), CorpusConfig(name="reverse"), name=name)


def asked(*names, owner=""):
    with acting_as(Person(id=owner)) if owner else nullcontext():
        for name in names:
            run_folder.start(create(name))


def end(room, name):
    """As a trainer ends: a last word, and then the next run is started."""
    write_status(room / name, replace(read_status(room / name), state="finished", phase="", pid=None))
    start_waiting()


def test_only_so_many_are_at_work_and_the_others_know_their_place(room, launched):
    asked("a", "b", "c")
    assert launched == ["a"]
    assert [(run.id, run.place) for run in reversed(run_folder.list_runs())] == [("a", 0), ("b", 1), ("c", 2)]
    waits = status_of("b")
    assert (waits.state, waits.phase, waits.waiting, waits.active) == ("queued", "waiting", True, True)
    end(room, "a")
    assert launched == ["a", "b"]
    assert [run_folder.get_run(name).place for name in "abc"] == [0, 0, 1]


def test_the_limit_can_be_set_and_is_the_number_of_cpus_otherwise(launched, monkeypatch):
    monkeypatch.setenv(queue.LIMIT, "2")
    asked("a", "b", "c")
    assert launched == ["a", "b"]
    monkeypatch.delenv(queue.LIMIT)
    assert queue.max_runs() == usable_cpus()
    for wrong in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv(queue.LIMIT, wrong)
        with pytest.raises(RunError, match=rf"ATTENTION_LAB_MAX_RUNS \('{wrong}'\) must be a whole number"):
            queue.max_runs()


def test_visitors_take_turns_however_many_runs_one_of_them_queues(room, launched):
    asked("a1", "a2", "a3", "a4", owner="ada")
    asked("b1", "b2", owner="bob")
    asked("c1", owner="cyd")
    for name in ("a1", "b1", "c1", "a2", "b2", "a3"):
        assert launched[-1] == name
        end(room, name)
    assert launched == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_with_room_for_two_one_visitor_does_not_take_both_places(room, launched, monkeypatch):
    asked("a1", "a2", "a3", owner="ada")
    asked("b1", owner="bob")
    monkeypatch.setenv(queue.LIMIT, "2")
    start_waiting()
    assert launched == ["a1", "b1"]


@given(st.lists(st.sampled_from("abc"), max_size=12), st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)))
def test_the_order_holds_each_run_once_and_no_owner_falls_behind_another_by_two(owners, working):
    waiting = [Waiting(f"{owner}{i}", Ticket(owner=owner, asked=float(i))) for i, owner in enumerate(owners)]
    order = in_order(waiting, working, {})
    assert sorted(order) == sorted(one.run_id for one in waiting)
    counts = {owner: working.get(owner, 0) for owner in "abc"}
    for place, run_id in enumerate(order):
        counts[run_id[0]] += 1
        others = {run_id[0] for run_id in order[place:]} - {run_id[0]}
        assert all(counts[run_id[0]] <= counts[other] + 1 for other in others)
    for owner in "abc":  # one's own runs keep their order
        mine = [int(run_id[1:]) for run_id in order if run_id[0] == owner]
        assert mine == sorted(mine)


def test_a_waiting_run_is_cancelled_and_may_come_back_at_the_end(room, launched):
    asked("a", "b", "c")
    run_folder.stop("b")
    assert (status_of("b").state, status_of("b").reason) == ("stopped", "asked")
    assert run_folder.get_run("c").place == 1
    run_folder.resume("b")
    assert run_folder.get_run("b").place == 2
    run_folder.pause("b")
    assert status_of("b").state == "paused"
    end(room, "a")
    assert launched == ["a", "c"]


def test_a_waiting_run_is_neither_started_twice_nor_deleted(launched):
    asked("a", "b")
    with pytest.raises(RunError, match="b is already queued"):
        run_folder.start("b")
    with pytest.raises(RunError, match="b is already queued"):
        train_run("b")
    with pytest.raises(RunError, match="b is still waiting in the queue; stop it first"):
        run_folder.delete("b")
    assert launched == ["a"]


def test_a_resumed_run_keeps_its_step_while_it_waits(room):
    asked("a")
    write_status(room / create("b"), Status(state="paused", step=40, elapsed_s=2.5))
    run_folder.resume("b")
    assert (status_of("b").step, status_of("b").elapsed_s) == (40, 2.5)


@pytest.mark.slow
def test_another_process_starts_what_waits_after_this_one_is_gone(room, launched):
    asked("a", "b")
    write_status(room / "a", Status(state="stopped"))
    code = (
        "from transformer.runs import queue\n"
        "queue.launch = lambda folder, threads, lock: print(folder.name, threads)\n"
        "queue.start_waiting()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["b", "1"]
    assert launched == ["a"]


@pytest.mark.slow
@pytest.mark.processes
def test_processes_that_start_the_next_run_at_the_same_moment_start_it_once(room):
    asked("a", "b", "c", "d")
    write_status(room / "a", Status(state="stopped"))
    code = (
        "import os, time\n"
        "from transformer.runs import queue\n"
        "from transformer.runs.status import Status, write_status\n"
        "def launch(folder, threads, lock):\n"
        f"    write_status(folder, Status(state='running', pid={os.getpid()}))\n"
        "    print(folder.name)\n"
        "queue.launch = launch\n"
        "queue.start_waiting()"
    )
    racing = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    started = [line for process in racing for line in process.communicate()[0].split()]
    assert started == ["b"]


def test_a_run_whose_trainer_cannot_be_started_says_so_and_the_next_one_starts(room, launched, monkeypatch):
    asked("a", "b", "c")
    works = queue.launch

    def refuse_b(folder, threads, lock):
        if folder.name == "b":
            raise OSError(11, "Resource temporarily unavailable")
        works(folder, threads, lock)

    monkeypatch.setattr(queue, "launch", refuse_b)
    end(room, "a")
    assert status_of("b").state == "failed"
    assert status_of("b").error == "the trainer could not be started: Resource temporarily unavailable"
    assert launched == ["a", "c"]


def test_a_trainer_in_the_foreground_does_not_wait_but_starts_the_next_one_when_it_ends(launched):
    asked("a", "b")
    assert train_run(create("mine", max_steps=2, evaluate_every=2)).state == "finished"
    assert launched == ["a"]  # a is still at work
    run_folder.stop("a")
    write_status(folder_of("a"), Status(state="stopped"))
    assert train_run(create("mine-too", max_steps=2, evaluate_every=2)).state == "finished"
    assert launched == ["a", "b"]


def test_a_run_gets_one_thread_while_another_waits(room, launched):
    asked("a", "b")
    write_status(room / "a", Status(state="stopped"))
    first = create("first", threads=None)
    assert queue.claim(first).threads == 1


# Quotas


def test_without_a_quota_and_without_an_owner_nothing_is_refused(room, monkeypatch):
    asked("a", owner="ada")
    assert over_quota("ada") == ""
    monkeypatch.setenv(quota.DISK, "0")
    assert over_quota("") == ""


def test_a_quota_of_disk_refuses_with_both_numbers_and_the_way_out(room, monkeypatch):
    asked("a", owner="ada")
    (room / "a" / "weights.safetensors").write_bytes(bytes(3_000_000))
    assert 3_000_000 < used_bytes("ada") < 3_100_000
    monkeypatch.setenv(quota.DISK, "2.5")
    with pytest.raises(
        RunError, match=r"your runs and files take 3\.01 MB on disk, and a visitor may use 2\.5 MB: delete a run"
    ):
        asked("b", owner="ada")
    assert not (room / "b").exists(), "what is refused takes no room either"
    check_quota("bob")


def test_a_quota_of_time_counts_a_day_and_also_what_was_deleted(room, monkeypatch):
    monkeypatch.setenv(quota.MINUTES, "10")
    asked("a", owner="ada")
    write_status(room / "a", Status(state="paused", elapsed_s=240.0, heartbeat=time.time()))
    assert spent_s("ada") == 240.0
    run_folder.resume("a")  # a new ticket: what was spent on the old one is in the book
    assert spent_s("ada") == 240.0
    write_status(room / "a", Status(state="finished", elapsed_s=620.0, heartbeat=time.time()))
    assert spent_s("ada") == 620.0
    run_folder.delete("a")
    assert spent_s("ada") == 620.0
    with pytest.raises(RunError, match=r"your runs have trained for 10 minutes in 24 hours, and a visitor may use 10"):
        check_quota("ada")
    book = room / ".spent.jsonl"
    rows = read_rows(book)
    book.unlink()
    append_rows(book, [row | {"time": row["time"] - quota.DAY_S} for row in rows])
    assert spent_s("ada") == 0.0


def test_a_run_pauses_when_its_owners_time_is_used_up_and_says_so(room, monkeypatch):
    monkeypatch.setenv(quota.MINUTES, "0.0001")
    monkeypatch.setattr(status, "QUOTA_CHECK_S", 0.0)
    run_id = create("a", max_steps=10_000)
    write_json(room / run_id / quota.TICKET_FILE, {"owner": "ada", "asked": time.time(), "elapsed_s": 0.0})
    ended = train_run(run_id)
    assert ended.state == "paused"
    assert ended.reason.startswith("your runs have trained for 0 minutes in 24 hours")
    assert run_folder.get_run(run_id).resumable


@pytest.mark.parametrize("name", [quota.DISK, quota.MINUTES])
def test_a_quota_that_is_no_number_is_refused(monkeypatch, name):
    monkeypatch.setenv(name, "lots")
    with pytest.raises(RunError, match=rf"{name} \('lots'\) must be a number"):
        quota.check_limits()


def test_a_ticket_that_cannot_be_read_belongs_to_nobody(room):
    create("a")
    (room / "a" / "ticket.json").write_text('{"owner": 3, "asked": "yes"}')
    assert quota.read_ticket(room / "a") == Ticket()
