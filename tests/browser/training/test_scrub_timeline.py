"""Browser test: train a tiny run, scrub its timeline, see the translation change, and play it as a film."""

import re
from dataclasses import replace

import pytest
from app_server import Server
from controls import wait_for_rest
from playwright.sync_api import Page, expect
from tiny_runs import MODEL, settings

from transformer.checkpoints.store import load_checkpoint
from transformer.config import CorpusConfig
from transformer.lab import Lab
from transformer.runs import run_folder
from transformer.runs.worker import train_run

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COMPUTING_MS = 120_000
"""The time limit for translating with every snapshot, on a busy machine."""
STEPS = 64


@pytest.fixture(scope="module")
def run(server: Server) -> str:
    """A run of 64 steps in the server's folder, trained by its own worker code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
        run_id = run_folder.create_run(
            replace(MODEL, n_decoder_layers=2),
            settings(max_steps=STEPS, learning_rate=1e-2, evaluate_every=32),
            CorpusConfig(name="reverse"),
            pinned=("a b c",),
            name="film",
        )
        assert train_run(run_id).state == "finished"
    return run_id


@pytest.fixture(scope="module")
def early(server: Server) -> str:
    """The same after two steps, when it writes one token until there is no more room."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
        model, train = replace(MODEL, n_decoder_layers=2), settings(max_steps=2, evaluate_every=1)
        run_id = run_folder.create_run(model, train, CorpusConfig(name="reverse"), pinned=("a b c",), name="early")
        assert train_run(run_id).state == "finished"
    return run_id


def written(server: Server, run: str, step: int) -> tuple[str, ...]:
    """The tokens that the snapshot of a step makes of the sentence."""
    folder = server.runs / run
    lab = Lab(load_checkpoint(folder, weights=folder / "snapshots" / f"{step}.safetensors"))
    return lab.inspect("a b c").target_tokens


def open_timeline(page: Page, server: Server, run: str, **parameters: object) -> None:
    page.goto(server.link("train", run=run, **parameters))
    expect(page.get_by_test_id("film-step")).to_be_visible(timeout=COMPUTING_MS)
    expect(page.get_by_text(re.compile("The most sudden change|No sudden change"))).to_be_visible(timeout=COMPUTING_MS)
    expect(page.get_by_text("Checked:")).to_be_visible(timeout=COMPUTING_MS)  # above the film, which it moves
    expect(page.get_by_test_id("film-said")).not_to_be_empty()
    wait_for_rest(page)  # what is drawn late above the film moves it under the mouse


def test_scrub_a_run_and_play_it(page: Page, server: Server, run: str):
    open_timeline(page, server, run)
    step, said = page.get_by_test_id("film-step"), page.get_by_test_id("film-said")
    expect(step).to_have_text(f"step {STEPS}")
    newest = said.inner_text()

    slider = page.get_by_role("slider", name="Training step")
    slider.press("Home")
    expect(step).to_have_text("step 0")
    expect(said).not_to_have_text(newest)
    assert tuple(said.inner_text().split()[:5]) == written(server, run, 0)[:5]
    page.wait_for_url("**film_step=0**")
    slider.press("ArrowRight")
    expect(step).to_have_text("step 1")
    page.wait_for_url("**film_step=1")

    page.reload()
    expect(step).to_have_text("step 1", timeout=COMPUTING_MS)
    open_timeline(page, server, run, film_step=2)  # early enough for a film of some seconds
    expect(step).to_have_text("step 2")
    expect(slider).to_have_attribute("aria-valuetext", "step 2")

    page.get_by_role("button", name="Play the film").click()
    expect(page.get_by_role("button", name="Pause the film")).to_be_visible()
    expect(step).to_have_text(f"step {STEPS}", timeout=COMPUTING_MS)
    expect(page.get_by_role("button", name="Play the film")).to_be_visible()
    expect(said).to_have_text(newest)
    page.wait_for_function("() => !new URLSearchParams(location.search).has('film_step')")


def test_another_head_is_chosen_in_the_grid_and_the_picture_follows(page: Page, server: Server, run: str):
    open_timeline(page, server, run)
    large = page.locator(".st-key-timeline-frames canvas.head")
    before = large.evaluate("canvas => canvas.toDataURL()")
    page.get_by_role("gridcell", name="layer 0, head 1").click()
    page.wait_for_url("**film_head=1**")
    page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before",
        arg=[large.element_handle(), before],
        timeout=COMPUTING_MS,
    )


def test_a_drag_on_the_heads_strip_scrubs(page: Page, server: Server, run: str):
    open_timeline(page, server, run)
    strip = page.locator(".st-key-timeline-frames .stack svg")
    strip.hover(position={"x": 300, "y": 8})  # once it stands still
    box = strip.bounding_box()
    assert box is not None
    page.mouse.down()
    page.mouse.move(box["x"] + 64, box["y"] + 8, steps=4)
    page.mouse.up()
    expect(page.get_by_test_id("film-step")).to_have_text("step 0")
    page.wait_for_url("**film_step=0**")


def test_a_run_that_cannot_end_a_sentence_yet_is_no_higher_than_a_trained_one(
    page: Page, server: Server, run: str, early: str
):
    heights = []
    for name in (early, run):
        page.goto(server.link("train", run=name))
        expect(page.get_by_test_id("film-said")).not_to_be_empty(timeout=COMPUTING_MS)
        wait_for_rest(page)
        sentence = page.locator(".st-key-sentences section").first.bounding_box()
        pictures = page.locator(".st-key-timeline-frames .pictures").bounding_box()
        assert sentence is not None and pictures is not None
        heights.append((sentence["height"], pictures["height"]))
    assert heights[0] == pytest.approx(heights[1], abs=8)
    assert heights[0][0] < 260 and heights[0][1] < 420  # however much it writes
