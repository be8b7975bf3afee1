"""Results are held within a number of bytes, and made once however many ask."""

import sys
import threading
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import pytest
import torch
from page_models import REVERSE

from pages.shared import loading
from pages.shared.background import Background
from pages.shared.serving import machine
from pages.shared.serving.held import Held
from pages.shared.serving.machine import CACHE_MB, cache_bytes, memory_bytes
from pages.shared.serving.sizes import size_of

KB = 1_000


@dataclass
class Grows:
    @cached_property
    def table(self):
        return np.zeros(500 * KB, dtype=np.uint8)


@pytest.mark.parametrize(
    "made",
    [
        lambda: np.zeros(100 * KB, dtype=np.uint8),
        lambda: np.zeros(100 * KB, dtype=np.uint8)[:],
        lambda: torch.zeros(100 * KB, dtype=torch.uint8),
        lambda: {"a": ["x" * 50 * KB, b"y" * 50 * KB]},
        lambda: np.array(["x" * 50 * KB, "y" * 50 * KB], dtype=object),
        lambda: torch.nn.Linear(250, 100),
    ],
    ids=["array", "view", "tensor", "texts", "objects", "model"],
)
def test_an_object_weighs_what_it_holds(made):
    assert 100 * KB <= size_of(made()) < 112 * KB


def test_a_part_reached_twice_is_weighed_once():
    part = np.zeros(100 * KB, dtype=np.uint8)
    circle = [part, part]
    circle.append(circle)
    assert size_of(circle) < 101 * KB


@pytest.mark.parametrize("seen_as", [lambda table: table, MappingProxyType], ids=["dict", "proxy"])
def test_a_table_is_weighed_while_another_thread_fills_it(seen_as):
    table, over = dict.fromkeys(range(5_000)), threading.Event()

    def fill():
        for key in range(5_000, 5_000_000):
            table[key] = key
            del table[key - 5_000]
            if over.is_set():
                return

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    filling = threading.Thread(target=fill)
    filling.start()
    try:
        assert all(size_of(seen_as(table)) > 5_000 for _ in range(30))
    finally:
        over.set()
        filling.join()
        sys.setswitchinterval(before)


def test_what_is_held_stays_within_its_bytes_and_the_longest_unused_goes():
    held = Held(350 * KB)

    def get(name):
        return held.get("f", name, lambda: made.append(name) or np.zeros(100 * KB, dtype=np.uint8), 99)

    made = []
    for name in "abcad":
        get(name)
    assert made == [*"abcd"] and held.bytes <= held.max_bytes
    get("a")
    assert made == [*"abcd"]
    get("b")
    assert made == [*"abcdb"]


def test_a_result_larger_than_all_room_is_handed_out_and_not_held():
    held = Held(50 * KB)
    assert held.get("f", "a", lambda: np.zeros(100 * KB), 9).size == 100 * KB
    assert len(held) == held.bytes == 0


def test_a_function_holds_at_most_its_entries():
    held = Held(10_000 * KB)
    for key in "abc":
        held.get("f", key, list, 2)
        held.get("g", key, list, 9)
    assert len(held) == 2 + 3


@pytest.mark.parametrize(("uses", "weighed_at"), [(0, 1), (1, 4), (4, 16)])
def test_what_a_result_computes_later_is_weighed_too(uses, weighed_at):
    held = Held(300 * KB)
    grows = held.get("f", "a", Grows, 9)
    for _ in range(uses):
        held.get("f", "a", Grows, 9)
    assert grows.table.size
    for _ in range(uses + 1, weighed_at):
        held.get("f", "a", Grows, 9)
        assert len(held) == 1
    held.get("f", "a", Grows, 9)
    assert len(held) == held.bytes == 0


def test_many_who_ask_at_once_get_one_result_and_an_error_is_only_the_makers():
    held, begun, made, found = Held(100 * KB), threading.Barrier(8), [], []

    def make():
        made.append(1)
        if len(made) == 1:
            raise ValueError("the first")
        return object()

    def ask():
        begun.wait()
        try:
            found.append(held.get("f", "a", make, 9))
        except ValueError:
            found.append(None)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(made) == 2 and found.count(None) == 1 and len(set(found)) == 2


def test_kept_work_is_bounded_by_bytes(monkeypatch):
    monkeypatch.setattr("pages.shared.background._MAX_BYTES", 250 * KB)
    works = Background("test", kept=60)
    for key in range(5):
        works.submit(key, lambda _: np.zeros(100 * KB, dtype=np.uint8)).result()
    works.submit("last", lambda _: None).result()
    assert [works.find(key) is not None for key in range(5)] == [False, False, False, True, True]


@pytest.mark.parametrize(("text", "found"), [("300", 300_000_000), ("", None)])
def test_the_room_for_results_is_a_setting(monkeypatch, text, found):
    monkeypatch.setenv(CACHE_MB, text)
    assert cache_bytes() == found if found else 0 < cache_bytes() <= 1_000_000_000


@pytest.mark.parametrize("text", ["0", "-3", "much", "1.5"])
def test_a_setting_that_is_no_number_says_so(monkeypatch, text):
    monkeypatch.setenv(CACHE_MB, text)
    with pytest.raises(ValueError, match=f"{CACHE_MB} \\('{text}'\\) must be a whole number"):
        cache_bytes()


def test_an_inspection_is_weighed_with_its_arrays(untrained_models):
    seen = loading.get_inspection(loading.get_lab(REVERSE), "a b c")
    arrays = [seen.log_probs, *(each.weights for each in seen.attentions.values())]
    assert size_of(seen) > sum(each.nbytes for each in arrays)


def test_the_memory_of_a_unit_is_its_own_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_PROC", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "groups")
    whole = memory_bytes()
    unit = tmp_path / "groups" / "system.slice" / "lab.service"
    unit.mkdir(parents=True)
    (tmp_path / "cgroup").write_text("0::/system.slice/lab.service\n")
    (unit / "memory.max").write_text("max\n")
    assert memory_bytes() == whole
    (unit.parent / "memory.max").write_text("400000000\n")
    assert memory_bytes() == 400_000_000
