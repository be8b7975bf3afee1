"""Browser test: upload a file, see its contents, train on it, scrub, kill the server, and go on where it was."""

import os
import re
import signal
import time
from pathlib import Path

import pytest
from app_server import Server, running_app
from controls import SMALL, TRAINING_MS, bring, press, state, unfold_settings
from playwright.sync_api import Page, expect

from transformer.runs.status import status

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOUNS = {"cat": "chat", "dog": "chien", "book": "livre", "car": "camion", "hat": "chapeau", "garden": "jardin"}
COLOURS = {"red": "rouge", "blue": "bleu", "green": "vert", "white": "blanc", "black": "noir", "grey": "gris"}
VERBS = {"sees": "voit", "likes": "aime", "wants": "veut", "finds": "trouve", "draws": "dessine", "buys": "achète"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """216 pairs as manythings.org has them, with a third column; two of them twice, and a line with one side."""
    pairs = [
        f"The {noun} {verb} {colour}.\tLe {NOUNS[noun]} {VERBS[verb]} {COLOURS[colour]}.\tCC-BY"
        for noun in NOUNS
        for verb in VERBS
        for colour in COLOURS
    ]
    path = tmp_path / "my pairs.tsv"
    path.write_text("\n".join([*pairs, *pairs[:2], "a line with one side"]), encoding="utf-8")
    return path


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs of this test alone: its server is killed."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_bring_a_file_train_scrub_and_resume_after_the_server_was_killed(page: Page, file: Path, room: Path):
    with running_app(room, room.parent / "log.txt") as first:
        run = _trained_a_little(page, first, file)
        _scrubbed(page)
        os.killpg(first.pid, signal.SIGKILL)
    _killed(run)
    with running_app(room, room.parent / "second-log.txt") as second:
        page.goto(second.link("train", run=run))
        before = status(run).step
        press(page, "Resume", "Training")
        _trained_past(run, before)
        press(page, "Stop", "Stopped")
        assert status(run).step > before > 0
        page.goto(second.link("train"))
        page.get_by_role("combobox", name="Corpus").press_sequentially(
            "my pairs"
        )  # the list is long, and draws only what is in sight
        expect(page.get_by_role("option", name="my pairs.tsv")).to_be_visible()


def test_a_file_that_cannot_be_used_is_refused_and_nothing_is_lost(page: Page, server: Server, tmp_path: Path):
    page.goto(server.link("train", seed=5))
    wrong = tmp_path / "one column.tsv"
    wrong.write_text("only one side\n" * 300)
    bring(page, wrong)
    expect(page.get_by_text("one column.tsv").filter(has_text="side").first).to_be_visible()
    expect(page.locator("input[type=file]")).to_have_count(0)  # closed by itself
    unfold_settings(page)
    expect(page.get_by_role("spinbutton", name="Seed")).to_have_value("5")
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_enabled()


def _trained_a_little(page: Page, server: Server, file: Path) -> str:
    """The id of a run on the file, at work and past its first evaluation."""
    page.goto(server.link("train"))
    bring(page, file)
    expect(page.get_by_text("216 of 219 pairs kept")).to_be_visible()
    expect(page.get_by_text("repeated, kept once")).to_be_visible()
    expect(page.get_by_text("a line with one side")).to_be_visible()
    expect(page.locator(".st-key-sentence-lengths .js-plotly-plot")).to_be_visible()
    expect(page.locator("input[type=file]")).to_have_count(0)  # the popover has closed by itself

    named = re.compile(r"[?&]corpus=([0-9a-f]{24})(&|$)")
    page.wait_for_url(named)
    corpus = named.search(page.url)
    assert corpus is not None
    many = {"steps": 100_000, "evaluate_every": 20, "warmup_steps": 10, "batch_tokens": 256, "precision": "float32"}
    page.goto(server.link("train", corpus=corpus[1], look="corpus", **SMALL, **many))
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_url(re.compile(r"[?&]run="), timeout=TRAINING_MS)
    run = page.evaluate("new URLSearchParams(location.search).get('run')")
    state(page, "Training")
    expect(page.locator(".st-key-sentences .latest bdi").first).not_to_be_empty(timeout=TRAINING_MS)
    return run


def _scrubbed(page: Page) -> None:
    """Pauses, and goes back in the timeline with the keyboard."""
    press(page, "Pause", "Paused")
    slider = page.get_by_role("slider", name="Training step")
    expect(slider).to_be_enabled(timeout=TRAINING_MS)
    slider.press("Home")
    expect(page).to_have_url(re.compile(r"[?&]film_step=0(&|$)"))
    expect(page.get_by_test_id("film-step")).to_have_text("step 0")
    press(page, "Resume", "Training")


def _trained_past(run: str, step: int) -> None:
    """Waits until the run is past a step: it goes on from its last saved state, a few steps before the kill."""
    deadline = time.monotonic() + TRAINING_MS / 1000
    while status(run).step <= step and time.monotonic() < deadline:
        time.sleep(0.1)


def _killed(run: str) -> None:
    """The trainer too: `running_app` ended it with the server, and the system takes a moment."""
    deadline = time.monotonic() + 30
    while status(run).active and time.monotonic() < deadline:
        time.sleep(0.1)
    assert status(run).state == "failed"
    assert "ended without a message" in status(run).error
