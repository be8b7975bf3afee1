"""Checks that the load driver finds what is lost, mixed or late."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from drive import Stage, _is_own
from session import Session, Shown
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

TEXT, OTHER = "The dog wasn't tired.", "The cat was slow."
SAYS = "Le chien n'était pas fatigué."


@pytest.mark.parametrize(
    ("shown", "own"),
    [
        (f"{TEXT} Le chien n était pas fatigué.", True),
        (f"value: {TEXT!r} Le, chien, pas", True),
        ("Le chien n était pas fatigué.", False),
        (f"{TEXT} La chatte", False),
        (f"{TEXT} {OTHER} Le chien n était pas fatigué.", False),
    ],
    ids=["own", "quoted", "no sentence", "another result", "another's sentence"],
)
def test_a_page_is_own_if_it_shows_this_sentence_its_result_and_no_other_sentence(shown, own):
    assert _is_own(Shown(0.1, shown, False), TEXT, {OTHER}, SAYS) is own


def test_a_line_tells_the_middle_and_the_slow_end():
    stage = Stage(3, seconds=[0.1] * 94 + [2.0] * 6, lost=1, mixed=2, cpu_s=5.0, memory=400_000_000)
    assert stage.line().split() == ["3", "100", "100", "2000", "2000", "50", "400", "1", "2"]


class _Talkative:
    """A server whose page never ends, and whose next message is always there already."""

    async def send(self, message: bytes) -> None:
        pass

    async def recv(self, *, decode: bool) -> bytes:
        return ForwardMsg(hash="another").SerializeToString()


def test_a_page_that_keeps_sending_and_never_ends_is_given_up():
    async def wait() -> None:
        async with asyncio.timeout(20):  # ends only a driver that yields; where it does not, pytest's own limit does
            await Session(_Talkative()).show("home", limit_s=0.05)  # type: ignore[arg-type]

    # A test in the browser before this one leaves an event loop in its thread.
    with ThreadPoolExecutor(1) as thread, pytest.raises(TimeoutError):
        thread.submit(asyncio.run, wait()).result()
