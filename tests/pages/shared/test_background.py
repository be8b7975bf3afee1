"""Work beside the pages: shared by those who want it, in turn, and at an end when nobody does."""

import gc
import threading
import time

import pytest
from streamlit.testing.v1 import AppTest

from pages.shared import background
from pages.shared.background import Background, Died, Stopped, Watcher, Work


def wait(condition) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.fixture
def going() -> threading.Event:
    return threading.Event()


@pytest.fixture
def endless(going):
    def compute(tell):
        while True:
            going.set()
            tell(0.5)
            time.sleep(0.002)

    return compute


def test_work_is_shared_and_ends_when_nobody_waits_for_it(endless, going):
    works, first, second = Background("test"), Watcher(), Watcher()
    work = works.submit("key", endless, first)
    assert works.submit("key", endless, second) is work is works.find("key")
    going.wait(20)
    works.leave("key", first)
    time.sleep(0.02)
    assert not work.over.is_set() and work.share == 0.5 and work.left_s is not None
    works.leave("key", second)
    wait(work.over.is_set)
    assert work.stopped
    again = works.submit("key", lambda tell: 7, first)
    assert again.result() == 7 and works.submit("key", endless, second) is again


def test_cancelled_work_ends_though_a_page_that_still_shows_it_joins_it_again(endless, going):
    works, watcher = Background("test"), Watcher()
    work = works.submit("key", endless, watcher)
    going.wait(20)
    works.cancel("key")
    work.join(watcher)
    wait(work.over.is_set)
    assert work.stopped and works.submit("key", lambda tell: 7, watcher).result() == 7


def test_a_cancel_that_comes_after_the_end_leaves_the_result():
    works, watcher = Background("test"), Watcher()
    assert works.submit("key", lambda tell: 7, watcher).result() == 7
    works.cancel("key")
    assert works.submit("key", lambda tell: 8, watcher).result() == 7


def test_work_ends_with_the_last_session_that_wanted_it(endless, going):
    watcher = Watcher()
    work = Background("test").submit("key", endless, watcher)
    going.wait(20)
    del watcher
    gc.collect()
    wait(work.over.is_set)
    with pytest.raises(Stopped):
        work.result()


def test_no_more_is_at_work_than_allowed_and_the_rest_follows_in_order():
    works, order, gate, lock = Background("test", at_once=2), [], threading.Event(), threading.Lock()

    def compute(name):
        def run(tell):
            with lock:
                order.append(name)
            assert gate.wait(20)
            return name

        return run

    found = [works.submit(name, compute(name)) for name in "abcd"]
    wait(lambda: len(order) == 2)
    time.sleep(0.02)
    assert sorted(order) == ["a", "b"] and [work.begun is None for work in found] == [False, False, True, True]
    gate.set()
    assert [work.result() for work in found] == list("abcd") and sorted(order[2:]) == ["c", "d"]


def test_an_error_is_kept_for_everyone_and_ends_nothing_else():
    works = Background("test")

    def broken(tell):
        raise ValueError("no such head")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such head"):
            works.submit("broken", broken).result()
    assert works.submit("whole", lambda tell: 1).result() == 1


def exit_here(tell):
    raise SystemExit("a library ends the thread")


def interrupt(tell):
    raise KeyboardInterrupt


def run_out_of_memory(tell):
    raise MemoryError


class Unmeasurable:
    """A result whose size cannot be told."""

    @property
    def nbytes(self):
        raise SystemError("no buffer")


@pytest.mark.parametrize(
    ("compute", "kind", "sentence"),
    [
        (exit_here, Died, r"this computation was ended \(SystemExit\): try again"),
        (interrupt, Died, r"this computation was ended \(KeyboardInterrupt\): try again"),
        (run_out_of_memory, Died, "there was not enough memory for this computation"),
        (lambda tell: Unmeasurable(), SystemError, "no buffer"),
        (lambda tell: tell("not a share", "so far") or tell(), TypeError, "share"),
    ],
    ids=["exit", "interrupt", "memory", "size", "misuse"],
)
def test_whatever_work_dies_of_its_waiters_go_on_and_so_does_what_waits_behind_it(compute, kind, sentence):
    works = Background("test")
    died, behind = works.submit("dies", compute), works.submit("behind", lambda tell: 1)
    assert died.over.wait(20) and behind.over.wait(20)
    with pytest.raises(kind, match=sentence):
        died.result()
    assert behind.result() == 1 and died.so_far is None


def test_work_that_died_begins_anew_for_whoever_asks_again():
    works, left = Background("test"), [exit_here, run_out_of_memory, lambda tell: 3]

    def compute(tell):
        return left.pop(0)(tell)

    for _ in range(2):
        with pytest.raises(Died):
            works.submit("key", compute).result()
    assert works.submit("key", compute).result() == 3


def test_a_part_of_a_page_whose_work_died_says_what_its_visitor_can_do():
    def page():
        from pages.shared.background import Died
        from pages.shared.guard import guard

        with guard("The rest of this page"):
            raise Died("this computation was ended (SystemExit): try again")

    (said,) = AppTest.from_function(page).run().error
    assert said.value == "The rest of this page could not be shown: this computation was ended (SystemExit): try again."


def test_without_a_thread_for_it_work_ends_with_a_sentence(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    works = Background("test")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(Died, match="too busy to compute anything more"):
            works.submit("key", lambda tell: 1).result()
    assert works.submit("key", lambda tell: 1).result() == 1


def test_work_ends_soon_after_its_last_visitor_has_left(endless, going, monkeypatch):
    monkeypatch.setattr(background, "GRACE_S", 0.1)
    left, stays = Watcher(lambda: False), Watcher(lambda: True)
    works = Background("test", at_once=2)
    abandoned, kept = works.submit("abandoned", endless, left), works.submit("kept", endless, stays)
    works.submit("kept", endless, left)
    wait(abandoned.over.is_set)
    assert abandoned.stopped
    time.sleep(0.2)
    assert not kept.over.is_set()
    works.cancel("kept")


def test_a_connection_that_fails_for_a_moment_ends_nothing(endless, going, monkeypatch):
    states = iter([True, False, False])
    watcher = Watcher(lambda: next(states, True))
    work = Background("test").submit("key", endless, watcher)
    going.wait(20)
    time.sleep(0.05)
    assert not work.over.is_set()
    work.cancel()


def test_work_can_be_cancelled_for_all_and_while_it_waits(endless, going):
    works, watcher = Background("test"), Watcher()
    first, second = works.submit("first", endless), works.submit("second", endless, watcher)
    going.wait(20)
    works.leave("second", watcher)
    works.cancel("first")
    wait(second.over.is_set)
    assert first.stopped and second.stopped


def test_so_many_results_are_kept_and_no_unfinished_work_is_forgotten(endless, going):
    works = Background("test", at_once=2, kept=2)
    going_on = works.submit("endless", endless)
    for name in "abcd":
        works.submit(name, lambda tell: 0).result()
    assert works.find("endless") is going_on and works.find("a") is None and works.find("d") is not None
    works.cancel("endless")
    going_on.over.wait(20)
    nothing = Background("test", kept=0)
    nothing.submit("key", lambda tell: 0).result()
    wait(lambda: nothing.find("key") is None)


def test_when_the_server_ends_all_work_is_stopped_and_its_threads_are_joined(endless, going):
    works = Background("test at its end", at_once=2)
    work, waiting = works.submit("key", endless), [works.submit(name, endless) for name in "abc"]
    going.wait(20)
    works.join()
    assert work.stopped and all(each.stopped for each in waiting)
    wait(lambda: all(thread.name != "test at its end" for thread in threading.enumerate()))


def test_work_tells_what_it_has_found_so_far_and_a_watcher_wants_one_thing_at_a_time(endless, going):
    works, watcher, found = Background("test"), Watcher(), threading.Event()

    def compute(tell):
        tell(0.25, lambda: "half")
        assert found.wait(20)
        return "whole"

    work = works.submit_instead("word", "key", compute, watcher)
    wait(lambda: work.so_far is not None)
    assert work.so_far() == "half"
    found.set()
    assert work.result() == "whole" and work.so_far is None
    first = works.submit_instead("word", "first", endless, watcher)
    assert going.wait(20)
    works.submit_instead("word", "second", lambda tell: 2, watcher)
    wait(first.over.is_set)
    assert first.stopped


def page_of_work() -> None:
    import streamlit as st

    from pages.shared.url.session import enter_page
    from pages.shared.waiting import follow_work

    enter_page("Work")
    work, waits_for = st.session_state["work"], st.session_state["waits for"]

    def note(why: str) -> None:
        st.session_state["ended"] = why

    if "ended" in st.session_state:
        st.text(st.session_state["ended"])
    else:
        follow_work(
            work,
            "Counting",
            lambda: note("stopped"),
            key="end",
            name="stop",
            waits_for=lambda: waits_for,
            at_end=lambda: note("over"),
        )


@pytest.mark.parametrize(
    ("begun_before_s", "waits_for", "said"),
    [
        (None, "", "Counting · waiting for another computation"),
        (0, "its turn", "Counting · its turn"),
        (30, "", "Counting · 75% · about 10 s left"),
    ],
)
def test_the_progress_of_work_says_what_it_waits_for_and_how_long_it_takes(begun_before_s, waits_for, said):
    at, work = AppTest.from_function(page_of_work), Work(lambda tell: None)
    if begun_before_s is not None:
        work.begun, work.share = time.monotonic() - begun_before_s, 0.75
    at.session_state["work"], at.session_state["waits for"] = work, waits_for
    at.run()
    assert [bar.proto.text for bar in at.get("progress")] == [said]
    assert at.button(key="end").label == "Stop"
    at.button(key="end").click().run()
    assert at.text[0].value == "stopped" and not at.get("progress")


def test_the_page_runs_again_once_the_work_that_it_follows_is_over():
    at, work = AppTest.from_function(page_of_work), Work(lambda tell: 1)
    at.session_state["work"], at.session_state["waits for"] = work, ""
    assert at.run().get("progress")
    work.run()
    assert at.run().text[0].value == "over" and not at.get("progress")
