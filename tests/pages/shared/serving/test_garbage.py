"""A server's garbage: freed beside the visitors' work, all of it, and never for long."""

import gc
import weakref

import pytest
from streamlit import config

from pages.shared.serving import garbage
from pages.shared.serving.garbage import Collector


class Part:
    """A part of a session: it and another one name each other, so that only a collection frees them."""

    def __init__(self):
        self.other = None


def session() -> Part:
    """Returns one of two parts that name each other."""
    one, two = Part(), Part()
    one.other, two.other = two, one
    return one


@pytest.fixture
def now(monkeypatch):
    """The time, in a list; nothing is freed but by the collector, whose collections take half a second each."""
    clock, worked = [100.0], [0.0]

    def thread_time():
        worked[0] += 0.5
        return worked[0]

    monkeypatch.setattr(garbage, "monotonic", lambda: clock[0])
    monkeypatch.setattr(garbage, "thread_time", thread_time)
    gc.collect()
    gc.freeze()
    gc.disable()
    yield clock
    gc.enable()
    gc.unfreeze()


def test_a_session_that_was_open_during_many_collections_is_freed_once_it_is_closed(now):
    collector, opened = Collector(), session()
    left = weakref.ref(opened)
    for _ in range(5):
        collector.collect()
        now[0] += 100.0
    assert left()
    del opened
    collector.collect()
    assert not left()


def test_a_collection_rests_for_fifty_times_as_long_as_it_took(now):
    collector = Collector()
    collector.collect()
    left = weakref.ref(session())
    now[0] += 24.9
    collector.collect()
    assert left()
    now[0] += 0.1
    collector.collect()
    assert not left()


def test_streamlit_does_not_collect_after_each_rerun():
    assert config.get_option("runner.postScriptGC") is False
