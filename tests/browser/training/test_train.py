"""Browser test of the Train page: train reverse for 100 steps, look inside it; pause and resume; compare; reload."""

import os
import re
import signal
import threading
from collections.abc import Sized
from pathlib import Path

import pytest
from app_server import Server, running_app
from controls import SMALL, TRAINING_MS, press, state, unfold_settings, wait_for_rest
from layout_shift import check_layout, watch_layout
from playwright.sync_api import Page, Route, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from tiny_runs import wait_until

from transformer.lab import load
from transformer.runs import run_folder
from transformer.runs.status import status

pytestmark = pytest.mark.browser

CODE_OF_FIELDS = re.compile(r"/(NumberInput|TextInput|TextArea|Selectbox|ButtonGroup)\.[^/]*\.js$")

_WATCH_HEIGHTS = """() => {
  window.heights = {};
  const look = () => {
    for (const part of ["curve", "readings"]) {
      const height = document.querySelector(`.st-key-${part}`)?.getBoundingClientRect().height;
      if (height !== undefined) (window.heights[part] ??= []).push(Math.round(height));
    }
    requestAnimationFrame(look);
  };
  look();
}"""
"""Notes the heights of a new run's parts at every frame."""


@pytest.fixture(autouse=True)
def same_runs(server: Server, monkeypatch):
    """Lets the tests load what the server loads."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(server.runs))


def open_small(page: Page, server: Server, **changes: object) -> None:
    """The Train page with the smallest sizes filled in."""
    page.goto(server.link("train", **{**SMALL, "batch_tokens": 256, "precision": "float32", **changes}))
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_enabled()


def train(page: Page, server: Server) -> str:
    """Presses the button; the new run's id, once it is in the URL."""
    before = [path.name for path in server.runs.iterdir()]
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function(
        "before => {"
        " const run = new URLSearchParams(location.search).get('run'); return run && !before.includes(run) }",
        arg=before,
    )
    return page.evaluate("new URLSearchParams(location.search).get('run')")


@pytest.mark.new_tab
@pytest.mark.slow
def test_train_pressed_before_the_fields_are_painted_starts_what_the_link_says(page: Page, server: Server):
    """A slow machine or line: the button is there, the code of the fields on its way, and the page runs once more."""
    held: list[Route] = []
    page.route(CODE_OF_FIELDS, lambda route: held.append(route))
    page.goto(server.link("train", **SMALL, batch_tokens=256, precision="float32", steps=20, evaluate_every=10))
    first = train(page, server)
    assert len(held) == 5, "these are the names of the fields' code"
    page.unroute_all()  # lets them come
    unfold_settings(page)
    expect(page.get_by_role("spinbutton", name="d_model")).to_have_value("32")
    expect(page.get_by_role("textbox", name="End after, steps")).to_have_value("20")
    second = train(page, server)
    for run in (first, second):
        settings = run_folder.get_run(run).settings
        assert (settings.corpus.name, settings.model.d_model, settings.model.n_heads) == ("reverse", 32, 2)
        assert (settings.train.max_steps, settings.train.batch_tokens, settings.pinned[0]) == (20, 256, "a b c d e")


@pytest.mark.smoke
def test_train_reverse_for_100_steps_then_look_inside_it(page: Page, server: Server):
    open_small(page, server, evaluate_every=25)
    unfold_settings(page)
    steps = page.get_by_role("textbox", name="End after, steps")
    steps.fill("100")
    steps.press("Enter")
    page.wait_for_url("**steps=100**")
    sentences = page.get_by_role("textbox", name="Sentences to follow")
    sentences.fill("a b c d\nt s r")
    sentences.press("Control+Enter")
    page.wait_for_url("**sentence=a+b+c+d**")

    run = train(page, server)
    expect(page.locator(".st-key-readings .state")).to_be_visible()
    watch_layout(page)
    state(page, "Finished")
    check_layout(page)
    expect(page.locator(".st-key-readings .rest")).to_contain_text("step 100 of 100")
    translation = load(run).translate(["a b c d"])[0]
    expect(page.locator(".st-key-sentences .latest bdi").first).to_have_text(translation)
    expect(page.locator(".st-key-curve path.line").first).to_have_attribute("d", re.compile("^M"))
    expect(page.get_by_test_id("film-step")).to_have_text("step 100")

    page.reload()
    state(page, "Finished")

    page.get_by_role("link", name="Look inside").click()
    page.wait_for_url("**/attention?**")
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value("a b c d")
    assert f"model={run}" in page.url
    expect(page.locator(".st-key-head canvas").first).to_be_visible()


@pytest.mark.new_tab
@pytest.mark.slow
def test_a_new_run_has_its_room_before_the_code_that_draws_it_has_come(page: Page, server: Server):
    open_small(page, server)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    page.evaluate(_WATCH_HEIGHTS)
    train(page, server)
    expect(page.locator(".st-key-curve svg").first).to_be_visible()
    expect(page.locator(".st-key-readings dd").first).to_be_visible()
    heights = page.evaluate("window.heights")
    assert set(heights) == {"curve", "readings"}
    for part, seen in heights.items():
        assert max(seen) > 100 and max(seen) - seen[0] < 10, f"{part}: {seen}"


@pytest.mark.slow
def test_a_run_is_seen_growing_pauses_resumes_and_stops(page: Page, server: Server):
    open_small(page, server, steps=100_000, evaluate_every=50)
    train(page, server)
    state(page, "Training")
    curve = page.locator(".st-key-curve path.line").first
    expect(curve).to_have_attribute("d", re.compile("^M"), timeout=TRAINING_MS)

    # The keyboard reads the curve.
    page.locator(".st-key-curve .root").press("ArrowLeft")
    expect(page.locator(".st-key-curve .entry b").first).not_to_be_empty()

    # It goes on while the visitor is elsewhere, and one can look inside meanwhile.
    page.get_by_role("link", name="Look inside").click()
    page.wait_for_url("**/attention?**")
    expect(page.locator(".st-key-head canvas").first).to_be_visible()
    page.get_by_role("link", name="Train", exact=True).click()
    state(page, "Training")

    press(page, "Pause", "Paused")
    press(page, "Resume", "Training")
    press(page, "Stop", "Stopped")


@pytest.mark.slow
def test_a_run_goes_on_while_the_server_is_killed_and_started_again(page: Page, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    with running_app(tmp_path, tmp_path / "log.txt") as first:
        open_small(page, first, steps=100_000, evaluate_every=50)
        run = train(page, first)
        state(page, "Training")
        os.killpg(first.pid, signal.SIGKILL)
        with running_app(tmp_path, tmp_path / "second-log.txt") as second:
            page.goto(second.link("train", run=run))
            state(page, "Training")
            seen = status(run).step
            wait_until(lambda: status(run).step > seen, "further steps")
            press(page, "Stop", "Stopped")


def test_runs_are_ticked_and_taken_in_hand_with_the_keyboard(page: Page, server: Server):
    open_small(page, server, steps=20, evaluate_every=10)
    run = train(page, server)
    state(page, "Finished")
    page.get_by_role("link", name="Runs", exact=True).click()
    tick = page.get_by_label(f"Show the curve of {run}", exact=True)
    expect(tick).to_be_checked()
    tick.press("Space")
    expect(tick).not_to_be_checked()
    page.get_by_role("button", name=run, exact=True).press("Enter")
    page.wait_for_url(f"**run={run}**")
    expect(page.get_by_role("button", name="Delete")).to_be_visible()


@pytest.mark.new_tab
@pytest.mark.slow
def test_a_new_run_stays_on_show_though_a_slow_line_brings_looks_at_the_one_before(page: Page, server: Server):
    """While a run trains the browser asks for the page by itself: for a while with the fields and URL of before."""
    lines: list[WebSocketRoute] = []
    held: list[str | bytes] = []
    asked: list[str | bytes] = []
    slow, drawn = threading.Event(), threading.Event()

    def connect(line: WebSocketRoute) -> None:
        """Lets through what the browser says; what the server says waits while the line is slow."""
        above = line.connect_to_server()
        lines.append(line)

        def answer(message: str | bytes) -> None:
            note_drawn(message, drawn)
            (held.append if slow.is_set() else line.send)(message)

        line.on_message(lambda message: (asked.append(message), above.send(message)))
        above.on_message(answer)

    page.route_web_socket("**/_stcore/stream**", connect)
    open_small(page, server, steps=100_000, evaluate_every=50)
    first = train(page, server)
    state(page, "Training")
    # A browser that waits for the rest of a page does not look at its run.
    wait_until(lambda: page.wait_for_timeout(50) or drawn.is_set(), "the page to be drawn")
    slow.set()
    page.get_by_role("button", name="Train", exact=True).click()

    def others() -> list[str]:
        return [run.id for run in run_folder.list_runs() if run.status.active and run.id != first]

    wait_until(lambda: page.wait_for_timeout(50) or others(), "the second run to start")
    (second,) = others()
    run_folder.pause(second)
    wait_until(lambda: run_folder.get_run(second).status.state == "paused", "the trainer to pause")
    hear(page, asked, 3)  # one of these looks has the whole page drawn anew
    while held:  # in order: what comes meanwhile is last
        lines[-1].send(held.pop(0))
    slow.clear()
    state(page, "Paused")
    expect(page).to_have_url(re.compile(rf"run={second}\b"))  # told a moment after what it shows
    wait_for_rest(page)  # all that was held is painted: a button that is replaced under a click loses it
    press(page, "Stop", "Stopped")
    run_folder.stop(first)


@pytest.mark.new_tab
@pytest.mark.slow
def test_looks_of_a_browser_that_has_not_painted_the_new_run_yet_leave_it_on_show(page: Page, server: Server):
    """A browser takes over a new URL at once, and paints the fields that came with it a little later."""
    behind: list[str] = []
    sent: list[str] = []

    def connect(line: WebSocketRoute) -> None:
        """Lets looks of the page say that the box of runs still shows the run before."""
        above = line.connect_to_server()

        def send(message: str | bytes) -> None:
            asked = BackMsg()
            asked.ParseFromString(message if isinstance(message, bytes) else message.encode())
            for field in asked.rerun_script.widget_states.widgets:
                if behind and asked.rerun_script.is_auto_rerun and field.id.endswith("-run-on-show"):
                    field.string_value = behind[0]
                    sent.append(asked.rerun_script.query_string)
            above.send(asked.SerializeToString())

        line.on_message(send)
        above.on_message(line.send)

    page.route_web_socket("**/_stcore/stream**", connect)
    open_small(page, server, steps=20, evaluate_every=10)
    train(page, server)  # there is a box of runs from the second one on
    first = train(page, server)
    state(page, "Finished")
    page.goto(server.link("train", **SMALL, batch_tokens=256, precision="float32", steps=100_000, run=first))
    state(page, "Finished")
    behind.append(first)
    second = train(page, server)
    wait_until(
        lambda: page.wait_for_timeout(200) or sum(f"run={second}" in query for query in sent) >= 12,
        "looks of the run, the timeline and the sidebar",
    )
    behind.clear()
    state(page, "Training")
    assert f"run={second}" in page.url
    page.get_by_role("combobox", name="Run").click()  # the visitor's own choice of that run counts
    page.get_by_role("option", name=first, exact=True).click()
    page.wait_for_url(f"**run={first}**")
    state(page, "Finished")
    run_folder.stop(second)


def note_drawn(message: str | bytes, drawn: threading.Event) -> None:
    """Notes from what the server says whether the whole page is drawn, or a run of it is under way."""
    told = ForwardMsg()
    told.ParseFromString(message if isinstance(message, bytes) else message.encode())
    if told.WhichOneof("type") == "new_session" and not told.metadata.run.fragment_ids:
        drawn.clear()
    elif told.WhichOneof("type") == "script_finished" and told.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
        drawn.set()


def hear(page: Page, asked: Sized, further: int) -> None:
    """Waits until the browser has asked the server so many times more."""
    before = len(asked)
    wait_until(lambda: page.wait_for_timeout(200) or len(asked) >= before + further, "the browser to ask")


@pytest.mark.slow
def test_a_bad_setting_is_refused_at_its_field(page: Page, server: Server):
    open_small(page, server)
    unfold_settings(page)
    width = page.get_by_role("spinbutton", name="d_model")
    width.fill("131")
    width.press("Enter")
    expect(page.get_by_text("must be divisible by the number of heads (2)")).to_be_visible()
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_disabled()
    expect(width).to_have_value("131")
