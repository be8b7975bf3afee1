"""Long work of the Heads page: shared by those who want it, and at an end when nobody does."""

import gc
import threading
import time

from pages.common.head_work import Stopped, Watcher, Works


def wait(condition) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_work_is_shared_and_ends_when_nobody_waits_for_it():
    works, going = Works(), threading.Event()

    def compute(tell):
        while True:
            going.set()
            tell(0.5)
            time.sleep(0.002)

    first, second = Watcher(), Watcher()
    work = works.of("key", compute, first)
    assert works.of("key", compute, second) is work
    going.wait(20)
    works.leave("key", first)
    time.sleep(0.02)
    assert not work.over.is_set() and work.share == 0.5 and work.left_s is not None
    works.leave("key", second)
    wait(work.over.is_set)
    assert isinstance(work.error, Stopped)
    again = works.of("key", lambda tell: 7, first)
    wait(again.over.is_set)
    assert again.found == 7 and works.of("key", compute, second) is again


def test_work_ends_with_the_last_session_that_wanted_it():
    works, going = Works(), threading.Event()

    def compute(tell):
        while True:
            going.set()
            tell(0.1)
            time.sleep(0.002)

    watcher = Watcher()
    work = works.of("key", compute, watcher)
    going.wait(20)
    del watcher
    gc.collect()
    wait(work.over.is_set)
    assert isinstance(work.error, Stopped)
