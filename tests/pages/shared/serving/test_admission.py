"""The door: so many inside, the others in their order, and each let in without doing anything."""

from time import monotonic

import pytest
from page_models import open_page, texts

from pages.shared.serving import admission
from pages.shared.serving.admission import GRACE_S, IDLE_S, Door, max_sessions
from pages.shared.serving.machine import MAX_SESSIONS


class House:
    """A door for tests, with its clock and its connections."""

    def __init__(self, limit: int) -> None:
        self.limit, self.gone, self.now = limit, set(), 0.0
        self.door = Door(lambda: self.limit, lambda session: session not in self.gone)

    def enter(self, *sessions: str) -> list[int]:
        return [self.door.enter(session, session.rstrip("'"), self.now) for session in sessions]

    def after(self, seconds: float) -> "House":
        self.now += seconds
        return self


def test_so_many_are_let_in_and_the_others_wait_in_their_order():
    house = House(2)
    assert house.enter("a", "b", "c", "d", "a") == [0, 0, 1, 2, 0]
    assert house.enter("d", "c") == [2, 1] and house.door.counts() == (2, 2)


def test_who_waits_is_let_in_when_a_page_is_closed_and_nobody_overtakes():
    house = House(1)
    house.enter("a", "b", "c")
    house.gone.add("a")
    assert house.enter("b") == [1]  # the page may be loading again
    assert house.after(GRACE_S + 1).enter("new", "c", "b", "c", "new") == [2, 1, 0, 1, 2]


def test_a_page_that_is_loaded_again_keeps_its_place():
    house = House(1)
    house.enter("a", "b")
    house.gone.add("a")
    assert house.enter("a'", "b") == [0, 1]


def test_another_tab_of_somebody_inside_waits_like_others():
    house = House(1)
    assert house.enter("a", "a'") == [0, 1]


def test_a_connection_that_comes_back_in_time_is_inside_as_before():
    house = House(1)
    house.enter("a", "b")
    house.gone.add("a")
    house.enter("b")
    house.gone.clear()
    assert house.after(GRACE_S + 1).enter("b", "a") == [1, 0]


def test_who_leaves_the_queue_is_not_waited_for():
    house = House(1)
    house.enter("a", "b", "c")
    house.gone.add("b")
    assert house.enter("c") == [1]


def test_a_page_left_alone_gives_its_place_up_only_if_somebody_waits():
    house = House(1)
    assert house.enter("a") == [0]
    assert house.after(IDLE_S + 1).enter("a") == [0]
    assert house.after(IDLE_S + 1).enter("b") == [1] and house.enter("b", "a") == [0, 1]


def test_a_smaller_limit_sends_nobody_away():
    house = House(2)
    house.enter("a", "b")
    house.limit = 1
    assert house.enter("a", "b", "c") == [0, 0, 1]


@pytest.mark.parametrize(
    ("cores", "gigabytes", "found"), [(2, 8, 50), (2, 1.6, 40), (16, 4, 180), (1, 0.5, 1)], ids=str
)
def test_the_limit_follows_the_machine(monkeypatch, cores, gigabytes, found):
    monkeypatch.delenv(MAX_SESSIONS, raising=False)
    monkeypatch.setattr(admission, "cores", lambda: cores)
    monkeypatch.setattr(admission, "memory_bytes", lambda: int(gigabytes * 1e9))
    monkeypatch.setattr(admission, "cache_bytes", lambda: min(10**9, int(gigabytes * 1e9 / 8)))
    assert max_sessions() == found


def test_the_limit_is_a_setting(monkeypatch):
    monkeypatch.setenv(MAX_SESSIONS, "7")
    assert max_sessions() == 7


def test_a_full_server_shows_the_place_in_the_queue_then_the_page(untrained_models, monkeypatch):
    monkeypatch.setenv(MAX_SESSIONS, "1")
    monkeypatch.setattr(admission, "DOOR", Door(max_sessions, lambda session: session != "left"))
    assert admission.DOOR.enter("other", "other", monotonic()) == 0
    at = open_page("attention", text="The cat slept.")
    assert "All places are taken" in texts(at) and "You are next" in texts(at)
    assert "takes 1 visitor at a time" in texts(at) and not at.text_input
    monkeypatch.setenv(MAX_SESSIONS, "2")
    at.run()
    assert "All places are taken" not in texts(at) and at.text_input[0].value == "The cat slept."
