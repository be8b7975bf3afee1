"""Pages opened as a second visitor by the links of the first one: nothing of the run comes through."""

import os
import time
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from asgi_calls import called
from page_models import REVERSE, checked, open_page, save_untrained, texts
from page_train import bars

from pages.paper_lab import running
from pages.shared.live.watches import WATCHES
from pages.shared.serving.middleware import DecodeAhead
from pages.shared.visitors import current
from pages.shared.visitors.recognition import COOKIE, Recognise, signed_id
from pages.shared.wording import plain
from pages.train.costs import at_work
from pages.training import corpora
from transformer.access.known_people import take_share
from transformer.access.people import Person, acting_as
from transformer.access.server_settings import IDENTITY, TEACHERS
from transformer.checkpoints.settings import read_settings, write_settings
from transformer.data.corpora import CorpusError
from transformer.files import write_json
from transformer.lab import Lab
from transformer.runs.labels import set_note
from transformer.runs.status import Status, write_status

ADA, BOB, TESS = "a" * 32, "b" * 32, "tess"
HERS = f"run:{REVERSE}"
LINKS = {
    "attention": {"model": REVERSE},
    "compare": {"models": "models", "other": REVERSE},
    "runs": {"run": REVERSE, "show": REVERSE},
    "train": {"run": REVERSE},
}


@pytest.fixture(autouse=True)
def hers(tmp_path, monkeypatch):
    """Ada's run, of a file of hers and with a note, on a server that tells visitors apart."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    monkeypatch.setenv(IDENTITY, "cookie")
    monkeypatch.setenv(TEACHERS, TESS)
    save_untrained(tmp_path)
    folder = tmp_path / REVERSE
    settings = read_settings(folder)
    (folder / "corpus").mkdir()
    (folder / "corpus" / "hers.tsv").write_text("".join(f"secret {i}\tsecret {i}\n" for i in range(300)))
    corpus = replace(settings.corpus, name="corpus/hers.tsv")
    write_settings(folder, replace(settings, corpus=corpus, pinned=("a secret b",)))
    write_status(folder, Status(state="finished"))
    write_json(folder / "ticket.json", {"owner": ADA})
    with acting_as(Person(id=ADA)):
        set_note(REVERSE, "a secret note")
    return folder


def as_visitor(monkeypatch, person_id):
    """Opens the following pages for this visitor, as if `Recognise` had found them."""
    monkeypatch.setattr(current, "unsealed", lambda value: person_id)


@pytest.mark.parametrize("page", LINKS)
def test_no_link_shows_another_visitor_anything_of_a_run(monkeypatch, page):
    as_visitor(monkeypatch, BOB)
    at = open_page(page, **LINKS[page])
    assert "secret" not in texts(at)
    offered = [str(option) for box in (*at.radio, *at.selectbox, *at.multiselect) for option in box.options]
    assert not [option for option in offered if option.startswith((REVERSE, HERS))]


GUESTS = {
    **LINKS,
    "steps": {"model": REVERSE, "text": "a b"},
    "heads": {"model": REVERSE},
    **{page: {"model": REVERSE} for page in ("masks", "home", "walkthrough", "positions")},
    "playground": {"run": REVERSE},
    "race": {"left_run": REVERSE, "right_run": REVERSE},
    "tokenizers": {"model": REVERSE, "corpus": HERS},
    "train": {"run": REVERSE, "corpus": HERS, "look": "corpus"},
}


@pytest.mark.parametrize("page", GUESTS)
def test_who_follows_her_link_looks_at_the_run_and_reads_nothing_that_she_typed_or_brought(hers, monkeypatch, page):
    as_visitor(monkeypatch, ADA)
    open_page(page, **GUESTS[page])  # what she may see must not be kept for him
    write_json(hers / "audience.json", {"token": "t"})
    take_share(BOB, "t")
    as_visitor(monkeypatch, BOB)
    at = open_page(page, **GUESTS[page])
    assert "secret" not in everything(at)
    assert REVERSE in everything(at) or page in ("train", "tokenizers", "playground", "race")  # which show no model
    offered = {button.label for button in at.button} | {link.label for link in at.get("page_link")}
    assert not offered & ONLY_HERS, offered


@pytest.mark.parametrize(("visitor", "follows"), [(ADA, {"state", "curves", "sentences"}), (BOB, {"state", "curves"})])
def test_a_guest_follows_her_run_without_her_sentences(hers, monkeypatch, visitor, follows):
    write_status(hers, Status(state="running", phase="training", pid=os.getpid(), heartbeat=time.time()))
    write_json(hers / "audience.json", {"token": "t"})
    take_share(BOB, "t")
    as_visitor(monkeypatch, visitor)
    watch = WATCHES.get(bars(open_page("train", run=hers.name))["live"]["address"].rpartition("/")[2])
    assert {part.name for part in watch.parts} == follows


ONLY_HERS = {
    *("Pause", "Resume", "Start", "Stop", "Cancel", "Rename", "Note", "Delete", "Keep it", "Repeat with another seed"),
    *("Sweep over a setting", "Continue with other settings", f"Download {REVERSE}.zip", "Withdraw the link"),
}


def test_her_buttons_pressed_by_another_visitors_message_change_and_give_nothing(hers, monkeypatch):
    """A message may name every button that a page of hers has: all are pressed at once, in the name of the guest."""
    write_json(hers / "audience.json", {"token": "t"})
    take_share(BOB, "t")
    runs, pressed = set(hers.parent.glob("[!.]*")), set()
    for state, form in (("running", ""), ("paused", "Rename"), ("paused", "Note"), ("finished", "Delete")):
        write_status(hers, Status(state=state, phase="training", pid=os.getpid(), heartbeat=time.time()))
        before = {path: path.read_bytes() for path in hers.rglob("*") if path.is_file()}
        as_visitor(monkeypatch, ADA)
        at = open_page("runs", **LINKS["runs"])
        if form:
            at = next(button for button in at.button if button.label == form).click().run()
        buttons = [button for button in at.button if "timeline-example" not in (button.key or "")]  # which type for her
        for button in buttons:
            button.proto.disabled = False  # who writes the message asks no page
            button.click()
        as_visitor(monkeypatch, BOB)
        at = checked(at.run())
        assert {path: path.read_bytes() for path in hers.rglob("*") if path.is_file()} == before
        assert "secret" not in everything(at) and "belongs to somebody else" in texts(at)
        pressed |= {button.label for button in buttons}
    assert set(hers.parent.glob("[!.]*")) == runs, "nothing was repeated"
    missing = {"Pause", "Stop", "Resume", "Save name", "Save note", "Delete for good", *ONLY_HERS} - pressed
    assert missing <= {"Start", "Continue with other settings", f"Download {REVERSE}.zip"}, missing


def test_who_stops_an_experiment_stops_their_own(monkeypatch):
    stopped = []
    monkeypatch.setattr(running, "works", lambda: SimpleNamespace(cancel=stopped.append))
    for person in (ADA, BOB):
        with acting_as(Person(id=person)):
            running._stop(SimpleNamespace(name="heads"), SimpleNamespace(name="quick"))
    assert stopped == [(ADA, "heads", "quick"), (BOB, "heads", "quick")]


def test_a_link_that_asks_for_more_than_a_look_says_why_not(hers, monkeypatch):
    write_json(hers / "audience.json", {"token": "t"})
    take_share(BOB, "t")
    as_visitor(monkeypatch, BOB)
    at = open_page("runs", tab="Sweeps", base=REVERSE)
    assert plain(f"{REVERSE[:1].upper()}{REVERSE[1:]} belongs to somebody else: you may look at it") in texts(at)
    assert all(button.disabled for button in at.button if button.label.startswith("Train "))
    at = open_page("train", corpus=HERS)
    assert plain("the file hers.tsv belongs to somebody else: bring a file of your own") in texts(at)


@pytest.mark.parametrize("person", [ADA, TESS], ids=["owner", "teacher"])
def test_the_same_link_shows_it_to_its_owner_and_to_a_teacher(monkeypatch, person):
    as_visitor(monkeypatch, person)
    assert "a secret note" in texts(open_page("runs", **LINKS["runs"]))


def test_the_file_of_a_run_is_its_owners_alone(hers):
    with acting_as(Person(id=ADA)):
        assert corpora.config_name(HERS) == str(hers.resolve() / "corpus" / "hers.tsv")
    write_json(hers / "audience.json", {"token": "t"})
    for guest in (Person(id=BOB), Person(id=BOB, shares=frozenset("t"))):
        with acting_as(guest), pytest.raises(CorpusError, match=r"is not here|belongs to somebody else"):
            corpora.config_name(HERS)


def test_whoever_is_not_recognised_gets_a_page_that_says_so(monkeypatch):
    as_visitor(monkeypatch, "")
    at = open_page("runs", **LINKS["runs"])
    assert "does not know who you are" in texts(at) and "secret" not in texts(at) and not at.button


def test_decoding_ahead_is_for_those_who_may_look(hers, monkeypatch):
    decoded = []
    monkeypatch.setattr(Lab, "inspect", lambda lab, *rest, **more: decoded.append(lab.name))
    for cookie, expected in ((signed_id(BOB), []), (f"{ADA}.{'0' * 64}", []), (signed_id(ADA), [REVERSE])):
        ahead = DecodeAhead(_nothing)
        query = urlencode({"model": REVERSE, "text": "a b"})
        called(Recognise(ahead), "/attention", query=query, headers={"Cookie": f"{COOKIE}={cookie}"})
        assert ahead.latest is not None and ahead.latest.over.wait(60)
        assert decoded == expected


def test_the_class_page_shows_teachers_what_visitors_do_not_see(monkeypatch):
    as_visitor(monkeypatch, BOB)
    assert "Quotas" not in texts(open_page("classroom"))
    as_visitor(monkeypatch, TESS)
    at = open_page("classroom")
    assert "Quotas" in texts(at) and "a teacher: you see the runs of all" in texts(at)


def everything(at):
    """All that the browser gets of a page."""
    return "\n".join(str(getattr(node, "proto", "")) for block in (at.main, at.sidebar) for node in block)


async def _nothing(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_an_estimate_counts_the_runs_of_others_without_naming_them(hers):
    write_status(hers, Status(state="queued", phase="waiting"))
    with acting_as(Person(id=ADA)):
        assert at_work() == (REVERSE,)
    with acting_as(Person(id=BOB)):
        assert at_work() == ("another visitor's run",)
