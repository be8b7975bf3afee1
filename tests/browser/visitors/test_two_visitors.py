"""Two visitors of one server, each in a browser of their own: the second one tries to reach the first one's run."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
import websockets
from app_server import Server, running_app
from controls import open_menu
from page_models import save_untrained
from playwright.sync_api import Browser, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.shared.exhibit import EXPORT
from pages.shared.visitors.recognition import COOKIE, HEADER
from transformer.access.ownership import token_of
from transformer.access.people import Person, acting_as
from transformer.access.server_settings import IDENTITY, TEACHER_TOKEN
from transformer.files import write_json
from transformer.runs.labels import about, set_note
from transformer.runs.sharing import share, unshare
from transformer.runs.status import Status, write_status

SECRET = "a secret of the teachers"
NOTE = "nobody else reads this note"
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    """A server for a network, which tells visitors apart by their cookie, with untrained models among its runs."""
    runs = tmp_path_factory.mktemp("runs")
    save_untrained(runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(IDENTITY, raising=False)
        patch.setenv(TEACHER_TOKEN, SECRET)
        patch.setenv("ATTENTION_LAB_RUNS", str(runs))
        log = tmp_path_factory.mktemp("server") / "log.txt"
        with running_app(runs, log, listens_to="0.0.0.0") as server:
            yield server


@contextmanager
def visitor(browser: Browser) -> Iterator[Page]:
    """A new visitor's tab."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    yield page
    context.close()


def cookie_of(page: Page) -> str:
    found = {cookie["name"]: cookie for cookie in page.context.cookies()}[COOKIE]
    assert found["httpOnly"] and found["sameSite"] == "Lax"
    return found["value"]


def heading(page: Page):
    return page.locator("[data-testid=stMain] h1").first


@pytest.fixture(scope="module")
def ada(browser: Browser, server: Server) -> Iterator[Page]:
    """Ada, to whom one of the runs belongs from now on, with a note."""
    with visitor(browser) as page:
        page.goto(server.link("runs"))
        expect(heading(page)).to_be_visible()
        folder, owner = hers(server), cookie_of(page).split(".")[0]
        write_json(folder / "ticket.json", {"owner": owner, "asked": 0.0, "elapsed_s": 0.0})
        write_status(folder, Status(state="finished"))
        with pytest.MonkeyPatch.context() as patch, acting_as(Person(id=owner)):
            patch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
            set_note(folder.name, NOTE)
        yield page


def hers(server: Server):
    return next(path for path in sorted(server.runs.iterdir()) if (path / "config.json").is_file())


def test_another_visitor_neither_sees_nor_opens_a_run_until_it_is_shared(browser, ada: Page, server: Server):
    name = hers(server).name
    ada.goto(server.link("runs", run=name, show=name))
    expect(ada.get_by_text(NOTE).first).to_be_visible()
    expect(ada.get_by_role("button", name="Delete", exact=True)).to_be_visible()
    with visitor(browser) as bob:
        bob.goto(server.link("runs", run=name, show=name))
        expect(bob.get_by_text(f"The link asks for “{name}”, which is not here.")).to_be_visible()
        expect(bob.get_by_text(NOTE)).to_have_count(0)
        bob.goto(server.link("attention", model=name))
        expect(bob.get_by_text(f"there is no model '{name}'").first).to_be_visible()
        with acting_as(Person(id=cookie_of(ada).split(".")[0])):
            token = share(name)
        bob.goto(server.link("runs", run=name, show=name, share=token))
        expect(bob.get_by_text("Shared with you: you can look at it.")).to_be_visible()
        expect(bob.get_by_text(NOTE)).to_have_count(0)
        for label in ("Delete", "Stop", "Rename", "Note", "Download", "Repeat with another seed"):
            expect(bob.get_by_role("button", name=label, exact=True)).to_have_count(0)
        assert token not in bob.url, "what is in the address is copied and logged"
        with acting_as(Person(id=cookie_of(ada).split(".")[0])):
            unshare(name)
        bob.reload()
        expect(bob.get_by_text("which is not here")).to_be_visible()
        expect(bob.get_by_text(NOTE)).to_have_count(0)


def test_the_address_of_a_file_that_was_made_for_one_gives_another_nothing(browser, ada: Page, server: Server):
    name = hers(server).name
    ada.goto(server.link("attention", model=name))
    open_menu(ada, "head-matrix", EXPORT)
    with ada.expect_download() as download:
        ada.get_by_role("button", name="CSV", exact=True).first.click()
    address = download.value.url
    assert "/media/" in address and ada.request.get(address).text().startswith(download.value.path().read_text()[:9])
    with visitor(browser) as bob:
        assert bob.request.get(address).status == 404, "without a page of this server"
        bob.goto(server.link("runs"))
        expect(heading(bob)).to_be_visible()
        refused = bob.request.get(address)
        assert refused.status == 404 and "belongs to another visitor" in refused.text()
    assert ada.request.get(address).status == 200


@pytest.mark.slow
def test_who_knows_the_secret_is_a_teacher_and_sees_all(browser, ada: Page, server: Server):
    with visitor(browser) as tess:
        tess.goto(server.link("class"))
        for secret, answer in (
            ("a guess", "That is not the teacher's secret"),
            (SECRET, "a teacher: you see the runs"),
        ):
            tess.get_by_label("The teacher's secret").fill(secret)
            tess.get_by_role("button", name="I am a teacher").click()
            expect(tess.get_by_text(answer)).to_be_visible()
        tess.goto(server.link("runs", run=hers(server).name))
        expect(tess.get_by_text(NOTE).first).to_be_visible()


async def conversation(server: Server, cookie: str, messages: list[BackMsg]) -> list[ForwardMsg]:
    """Sends messages to a session of its own, each after the script that answers the one before has ended."""
    said: list[ForwardMsg] = []
    address = server.url.replace("http", "ws") + "/_stcore/stream"
    headers = {"Cookie": f"{COOKIE}={cookie}", HEADER: "0" * 32}
    async with websockets.connect(
        address, origin=server.url, subprotocols=["streamlit"], additional_headers=headers, max_size=None
    ) as line:
        for message in messages:
            await line.send(message.SerializeToString())
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                answer = ForwardMsg.FromString(await asyncio.wait_for(line.recv(), PATIENCE_S))
                said.append(answer)
                if answer.WhichOneof("type") == "script_finished":
                    break
    return said


def rerun(query: str, *pressed: str) -> BackMsg:
    """A message that opens Runs with a query, or presses buttons there by their ids."""
    message = BackMsg()
    message.rerun_script.query_string = query
    message.rerun_script.page_name = "runs"
    for button in pressed:
        message.rerun_script.widget_states.widgets.add(id=button, trigger_value=True)
    return message


def converse(server: Server, cookie: str, messages: list[BackMsg]) -> list[ForwardMsg]:
    """The conversation, in a thread of its own: the browser keeps an event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, conversation(server, cookie, messages)).result()


def content_of(folder: Path) -> dict[Path, bytes]:
    """All that a run's folder holds."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def buttons_in(said: list[ForwardMsg]) -> dict[str, str]:
    """The ids of all buttons that were drawn, by label."""
    drawn = (message.delta.new_element.button for message in said if message.HasField("delta"))
    return {button.label: button.id for button in drawn if button.id}


def test_messages_sent_by_hand_do_to_a_run_what_their_sender_may(browser, ada: Page, server: Server):
    folder = hers(server)
    query = urlencode({"run": folder.name, "show": folder.name})
    cookie = cookie_of(ada)
    opened = converse(server, cookie, [rerun(query)])
    delete = buttons_in(opened)["Delete"]
    everything = rerun(query, *buttons_in(opened).values())
    with acting_as(Person(id=cookie.split(".")[0])):
        share(folder.name)
    before = content_of(folder)
    with visitor(browser) as guest:
        guest.goto(server.link("runs", run=folder.name, show=folder.name, share=token_of(folder)))
        expect(guest.get_by_text("Shared with you: you can look at it.")).to_be_visible()
        said = converse(server, cookie_of(guest), [rerun(query), everything])
        assert NOTE.encode() not in b"".join(message.SerializeToString() for message in said)
        assert not buttons_in(said).keys() & {"Delete", "Rename", "Note", "Repeat with another seed", "Resume"}
    assert content_of(folder) == before and len(list(server.runs.glob("[!.]*"))) == 2, "nothing done, nothing repeated"
    press = rerun(query, delete)
    confirm = buttons_in(converse(server, cookie, [rerun(query), press]))["Delete for good"]
    again = rerun(query, confirm)
    with visitor(browser) as bob:
        bob.goto(server.link("runs"))
        expect(heading(bob)).to_be_visible()
        said = converse(server, cookie_of(bob), [rerun(query), press, again])
        assert NOTE.encode() not in b"".join(message.SerializeToString() for message in said)
    converse(server, cookie_of(ada)[:-1] + "x", [rerun(query), press, again])  # a forged cookie
    assert about(folder).note == NOTE
    converse(server, cookie, [rerun(query), press, again])
    assert not folder.exists(), "the same messages of its owner delete it"
    rows = [json.loads(line) for line in (server.runs / ".audit.jsonl").read_text().splitlines()]
    assert [row["as"] for row in rows if row["did"] == "delete"] == ["owner"]


@pytest.mark.parametrize("path", ["", "static/favicon.png", "app/static/mark.svg", "_stcore/health", "media/none.csv"])
def test_every_answer_says_that_it_belongs_to_nobody_elses_frame_and_is_what_it_says(server: Server, path):
    _, headers = ask(f"{server.url}/{path}")
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["x-content-type-options"] == "nosniff"
    own = [cookie for cookie in headers.get_all("set-cookie", []) if cookie.startswith(COOKIE)]
    assert len(own) == 1 and "HttpOnly" in own[0] and "SameSite=Lax" in own[0]


def test_metrics_answer_programs_of_the_machine_and_nobody_behind_a_proxy(server: Server):
    address = f"{server.url}/_stcore/metrics"
    assert ask(address)[0] == 200
    assert {ask(address, {"X-Forwarded-For": sent})[0] for sent in ("203.0.113.9", "127.0.0.1")} == {404}


def ask(address: str, headers: Mapping[str, str] | None = None) -> tuple[int, Message]:
    """The status of the answer to a request for a page, and its headers."""
    try:
        answer = urlopen(Request(address, headers={"Accept": "text/html"} | dict(headers or {})))
    except HTTPError as error:
        answer = error
    with answer:
        assert answer.status is not None
        return answer.status, answer.headers
