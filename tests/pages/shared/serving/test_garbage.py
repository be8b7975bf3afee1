import gc

import pytest

from pages.shared.serving import garbage


@pytest.fixture(autouse=True)
def watched():
    garbage.watch()
    gc.collect()
    gc.freeze()
    gc.collect()
    yield
    gc.callbacks.remove(garbage._note)
    gc.unfreeze()


def test_what_made_a_collection_long_is_frozen_and_the_next_is_short():
    kept, before = [[] for _ in range(1_000_000)], gc.get_freeze_count()
    gc.collect()
    assert garbage._took_s > garbage.LONG_S
    garbage.freeze_if_long()
    assert gc.get_freeze_count() >= before + len(kept)
    gc.collect()
    assert garbage._took_s < garbage.LONG_S


def test_after_a_short_collection_nothing_is_frozen():
    kept, before = [[] for _ in range(1000)], gc.get_freeze_count()
    garbage.freeze_if_long()
    assert gc.get_freeze_count() < before + len(kept)  # it may fall at any time: what was frozen before can still die


def test_a_collection_of_new_objects_alone_does_not_count():
    kept = [[] for _ in range(1_000_000)]
    garbage._took_s = 0.0
    gc.collect(1)
    assert garbage._took_s == 0.0
    del kept


def test_watching_twice_times_once():
    garbage.watch()
    assert gc.callbacks.count(garbage._note) == 1
