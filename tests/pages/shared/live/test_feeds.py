"""The streams of a run at work: drawn once for all who follow, sent as changes, and only to who may look."""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest
import tiny_runs
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from pages.shared.live import feeds
from pages.shared.live.feeds import Feed, Feeds, Follower
from pages.shared.live.socket import GONE, stream_route
from pages.shared.live.watches import WATCHES, LivePart, Watch, Watches, address_of
from transformer.access.ownership import TICKET_FILE
from transformer.access.people import ME, Person, acting
from transformer.files import write_json
from transformer.runs import run_folder
from transformer.runs.live.outputs import live_output
from transformer.runs.live.watched import wanted, write_outputs
from transformer.runs.status import Status, write_status

OTHER = Person(id="other")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The folder of a run that seems to be at work: this very process holds its status."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    found = tmp_path / tiny_runs.create(pinned=())
    set_state(found, "running")
    return found


def set_state(folder, state, step=0):
    write_status(
        folder, Status(state=state, phase="training" if state == "running" else "", step=step, pid=os.getpid())
    )


def write(folder, text, step):
    model = tiny_runs.state(tiny_runs.settings()).model
    write_outputs(folder, [live_output(model, tiny_runs.tokenizer(), text, step)])


class Drawing:
    """Parts that count how often they are drawn."""

    def __init__(self):
        self.count = 0

    def __call__(self, look):
        self.count += 1
        return None if look.output is None else (look.output.step, {"text": look.output.text, "same": 1})


def watch(folder, part, text="a b", person=ME):
    return Watch(person, folder, text, (part,))


def run(task):
    """Runs a coroutine in a thread of its own: a browser test in this process leaves a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, asyncio.wait_for(task, 30)).result()


async def next_message(follower):
    return json.loads(await follower.message())


async def news_of(follower, *names):
    """The news of all of these, which come apart where one was drawn slowly: it is not drawn again at once."""
    told = {}
    while not told.keys() >= set(names):
        told |= await next_message(follower)
    return told


def test_twenty_watchers_of_one_sentence_cost_one_drawing(folder):
    drawing = Drawing()
    part = LivePart("it", ("output",), drawing)
    write(folder, "a b", 5)

    async def follow():
        open_feeds = Feeds()
        async with AsyncExitStack() as stack:
            everybody = [await stack.enter_async_context(open_feeds.following(watch(folder, part))) for _ in range(20)]
            first = [await next_message(follower) for follower in everybody]
            write(folder, "a b", 6)
            return first, [await next_message(follower) for follower in everybody]

    first, then = run(follow())
    assert first == [{"it": {"text": "a b", "same": 1, "step": 5}}] * 20
    assert then == [{"it": {"step": 6}}] * 20
    assert drawing.count == 2


class Rows:
    """A part that tells how many rows a file of several runs has, their metrics unless another one is named."""

    def __init__(self, *folders, name="metrics.jsonl"):
        self.folders, self.name = folders, name

    def __call__(self, look):
        n = sum(len((folder / self.name).read_text().splitlines()) for folder in self.folders)
        return n, {"rows": n}


@pytest.mark.parametrize("source", ["metrics", "samples"])
def test_a_part_is_drawn_anew_with_the_file_that_it_is_on(folder, source):
    path = folder / f"{source}.jsonl"
    path.write_text("{}\n")
    part = LivePart("it", (source,), Rows(folder, name=path.name))

    async def follow():
        async with Feeds().following(watch(folder, part)) as follower:
            first = await next_message(follower)
            path.write_text("{}\n{}\n")
            return [first, await next_message(follower)]

    assert run(follow()) == [{"it": {"rows": n, "step": n}} for n in (1, 2)]


def test_a_part_that_shows_another_run_too_is_drawn_anew_with_either(folder):
    other = run_folder.get_run(tiny_runs.create(pinned=())).folder
    for one in (folder, other):
        (one / "metrics.jsonl").write_text("{}\n")
    part = LivePart("it", ("metrics",), Rows(folder, other), beside=(other,))

    async def follow():
        async with Feeds().following(watch(folder, part)) as follower:
            found = [await next_message(follower)]
            for one in (other, folder):
                (one / "metrics.jsonl").write_text("{}\n{}\n")
                found.append(await next_message(follower))
            return found

    assert run(follow()) == [{"it": {"rows": n, "step": n}} for n in (2, 3, 4)]


def test_who_may_not_look_at_the_run_beside_follows_neither(folder):
    other = run_folder.get_run(tiny_runs.create(pinned=())).folder
    (folder / "metrics.jsonl").write_text("{}\n")
    write_json(other / TICKET_FILE, {"owner": "somebody"})
    part = LivePart("it", ("metrics",), Rows(folder), beside=(other,))

    async def follow():
        async with Feeds().following(watch(folder, part, person=OTHER)) as follower:
            return await follower.message()

    assert run(follow()) == ""
    write_json(other / TICKET_FILE, {"owner": "other"})
    write_json(folder / TICKET_FILE, {"owner": "other"})
    assert json.loads(run(follow())) == {"it": {"rows": 1, "step": 1}}


def test_only_what_changed_is_sent(folder):
    part = LivePart("it", ("output",), Drawing())

    async def follow():
        write(folder, "a b", 5)
        async with Feeds().following(watch(folder, part)) as follower:
            first = await next_message(follower)
            write(folder, "a b", 6)
            return first, await next_message(follower)

    assert run(follow()) == ({"it": {"text": "a b", "same": 1, "step": 5}}, {"it": {"step": 6}})


def test_each_gets_the_output_of_their_own_sentence_alone(folder):
    part = LivePart("it", ("output",), Drawing())
    write(folder, "a b", 5)

    async def follow():
        open_feeds = Feeds()
        async with (
            open_feeds.following(watch(folder, part, "c d")) as stranger,
            open_feeds.following(watch(folder, part, "a b")) as own,
        ):
            mine = await next_message(own)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stranger.message(), 4 * feeds.LOOK_EVERY_S)
            return mine, wanted(folder)

    mine, texts = run(follow())
    assert mine["it"]["text"] == "a b"
    assert texts == ("a b", "c d")


def test_a_slow_connection_gets_the_newest_and_skips_the_rest():
    async def follow():
        follower = Follower(Watch(ME, None, "", ()))
        for step in range(5):
            follower.offer({"it": {"step": step, "same": 1}})
        follower.offer({"over": "paused"})
        return await next_message(follower)

    assert run(follow()) == {"it": {"step": 4, "same": 1}, "over": "paused"}


@pytest.mark.parametrize("state", ["finished", "paused", "failed"])
def test_the_end_is_told_once_and_to_those_who_come_later(folder, state):
    part = LivePart("state", ("status",), lambda look: (look.run.status.step, {}))

    async def follow():
        open_feeds, told = Feeds(), []
        async with open_feeds.following(watch(folder, part)) as follower:
            told.append(await next_message(follower))
            set_state(folder, state, step=9)
            told.append(await news_of(follower, "state", "over"))
            async with open_feeds.following(watch(folder, part)) as late:
                told.append(await next_message(late))
        return told

    first, last, late = run(follow())
    assert first == {"state": {"step": 0}}
    assert last == {"state": {"step": 9}, "over": state}
    assert late == last


def test_a_run_that_is_deleted_is_over(folder):
    import shutil

    part = LivePart("state", ("status",), lambda look: (look.run.status.step, {}))

    async def follow():
        async with Feeds().following(watch(folder, part)) as follower:
            await next_message(follower)
            shutil.rmtree(folder)
            return await next_message(follower)

    assert run(follow()) == {"over": "gone"}


def test_who_may_not_look_any_more_is_told_nothing(folder, monkeypatch):
    monkeypatch.setattr(feeds, "WANT_EVERY_S", 0.05)
    write_json(folder / TICKET_FILE, {"owner": OTHER.id})
    part = LivePart("it", ("output",), Drawing())
    write(folder, "a b", 5)

    async def follow():
        async with Feeds().following(watch(folder, part, person=OTHER)) as follower:
            first = await follower.message()
            write_json(folder / TICKET_FILE, {"owner": "somebody else"})
            then = await follower.message()
        async with Feeds().following(watch(folder, part, person=OTHER)) as late:
            return first, then, await late.message()

    first, *then = run(follow())
    assert "a b" in first
    assert then == ["", ""]


def test_a_part_that_cannot_be_drawn_leaves_the_others_alone(folder, caplog):
    def broken(look):
        if look.output is None or look.output.step == 5:
            raise KeyError("no")
        return look.output.step, {}

    parts = LivePart("it", ("output",), broken), LivePart("other", ("output",), Drawing())

    async def follow():
        write(folder, "a b", 5)
        async with Feeds().following(Watch(ME, folder, "a b", parts)) as follower:
            first = await next_message(follower)
            write(folder, "a b", 6)
            return first, await news_of(follower, "it", "other")

    first, then = run(follow())
    assert first == {"other": {"text": "a b", "same": 1, "step": 5}}
    assert then == {"it": {"step": 6}, "other": {"step": 6}}
    assert "KeyError" in caplog.text


def test_a_feed_forgets_sentences_that_nobody_watches_any_more(folder):
    feed, part = Feed(folder), LivePart("it", ("output",), Drawing())
    for index in range(50):
        feed._news((watch(folder, part, f"a {index}"),))
    assert len(feed._drawn) == len(feed._memories) == 1


def test_addresses_cannot_be_guessed_and_stay_the_same(folder):
    part, one = LivePart("it", ("output",), Drawing()), run_folder.get_run(folder.name)
    address = address_of(one, "a b", (part,))
    assert address == address_of(one, "a b", (part,)) != address_of(one, "a c", (part,))
    ticket = address.rpartition("/")[2]
    assert len(ticket) >= 24
    assert WATCHES.get(ticket) == Watch(acting(), folder, "a b", (part,))


def test_the_oldest_addresses_are_forgotten():
    watches = Watches(2)
    known = [watches.ticket(Watch(ME, None, text, ())) for text in "abc"]
    assert [watches.get(ticket) is not None for ticket in known] == [False, True, True]


def test_the_route_streams_to_who_has_an_address_and_to_nobody_else(folder):
    write(folder, "a b", 5)
    address = address_of(run_folder.get_run(folder.name), "a b", (LivePart("it", ("output",), Drawing()),))

    def browse():
        with TestClient(Starlette(routes=[stream_route()])) as client:
            with client.websocket_connect(address) as socket:
                told = socket.receive_json()
            with client.websocket_connect("/live/made-up") as socket, pytest.raises(WebSocketDisconnect) as left:
                socket.receive_json()
            return told, left.value.code

    with ThreadPoolExecutor(1) as thread:
        told, code = thread.submit(browse).result()
    assert told == {"it": {"text": "a b", "same": 1, "step": 5}}
    assert code == GONE
