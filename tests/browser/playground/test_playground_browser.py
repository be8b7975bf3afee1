"""Browser test of the Playground: Play, a curve within seconds, pause, one step, a knob; nothing moves meanwhile."""

import re

import pytest
from app_server import Server
from controls import wait_for_rest, wait_for_trainers
from layout_shift import check_layout, watch_layout
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


STEPS = """() => {
  const text = (node) => [...(node.shadowRoot ?? node).childNodes]
    .map((child) => (child.nodeType === Node.TEXT_NODE ? child.textContent : text(child))).join(" ");
  const chips = document.querySelector(".st-key-playground-chips");
  const step = chips && /Output at step ([\\d,]+)/.exec(text(chips))?.[1];
  if (step) (window.steps ??= new Set()).add(step);
}"""
"""Notes the step of the output that is on the screen."""


def test_output_and_head_move_without_a_run_of_the_page_and_can_be_proved(page: Page, server: Server):
    page.goto(server.link("playground"))
    expect(page.get_by_text("nobody tells it the rule")).to_be_visible()
    page.evaluate(f"() => void setInterval({STEPS}, 20)")
    page.get_by_role("radio", name="in the same order").click()
    page.get_by_role("radio", name="in the same order").press("ArrowRight")
    expect(page.get_by_role("radio", name="backwards")).to_be_checked()
    expect(page).to_have_url(re.compile("guess=anti_diagonal"))
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_text("Last layer's clearest head")).to_be_visible()
    page.locator(".st-key-playground-head").get_by_text("About this figure").click()
    page.get_by_text("Prove it", exact=True).click()
    expect(page.get_by_text(re.compile(r"\d checks, run just now: all hold"))).to_be_visible()
    page.keyboard.press("Escape")
    wait_for_trainers(page, server.runs)
    expect(page.get_by_text("It learned to reverse letters")).to_be_visible()
    expect(page.get_by_text("Output at step 400")).to_be_visible()
    # 400 steps are over in seconds, and the page itself looks once in five: what moved more often came by the stream.
    assert page.evaluate("() => window.steps.size") >= 20
    expect(page.get_by_text("as you guessed")).to_be_visible()
    expect(page.get_by_text("what it became")).to_be_visible()
    menu = page.locator(".st-key-playground-head").get_by_text("About this figure")
    menu.click()
    expect(page.get_by_text("What am I looking at?")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Look inside").click()  # a menu opened just before takes the link's view not back
    expect(page).to_have_url(re.compile(r"/attention\?.*model=reverse-\d"))
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value("a b c d e f")


@pytest.mark.new_tab
def test_what_another_run_wrote_is_faint_until_the_new_run_writes(page: Page, server: Server):
    page.route_web_socket(re.compile("/live/"), lambda socket: None)  # the new run's outputs never come
    page.goto(server.link("playground"))
    page.get_by_role("button", name="Step", exact=True).click()
    expect(page.get_by_text("Paused at step")).to_be_visible()
    chips = page.locator(".st-key-playground-chips .root")
    expect(chips).to_have_css("opacity", "1")
    page.get_by_role("button", name="Restart").click()
    expect(chips).to_have_css("opacity", "0.3")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused at step")).to_be_visible()
    expect(chips).to_have_css("opacity", "1")


def test_a_step_of_the_tour_starts_and_a_part_given_back_is_as_it_was(page: Page, server: Server):
    """The box of the positions says nothing while there are none; the browser sends that back with the next press."""
    page.goto(server.link("playground", without="positions"))
    page.get_by_role("button", name="Step", exact=True).click()
    expect(page.get_by_text("Paused at step")).to_be_visible()
    page.get_by_text("Positions", exact=True).last.click()
    expect(page).not_to_have_url(re.compile("without="))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused at step")).to_be_visible()
    page.get_by_role("button", name="Restart").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused at step")).to_be_visible()
    assert "positions=" not in page.url and "expected=" not in page.url


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 800)])
def test_play_pause_step_and_turn_a_knob_without_a_jump(page: Page, server: Server, width: int, height: int):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(server.link("playground"))
    expect(page.get_by_text("nobody tells it the rule")).to_be_visible()
    expect(page.get_by_text("will be drawn here as it learns")).to_be_visible()  # the last part of the page
    wait_for_rest(page)
    watch_layout(page)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".st-key-playground-curves path").first).to_be_attached()
    expect(page.get_by_text(re.compile("Output at step [1-9]"))).to_be_visible()
    expect(page.get_by_text("Last layer's clearest head")).to_be_visible()
    # One screen holds all that moves; that of a phone the output, above all that can be turned.
    for part in ("curves", "chips", "matrix") if width == 1280 else ("chips",):
        bottom = f"document.querySelector('.st-key-playground-{part}').getBoundingClientRect().bottom"
        page.wait_for_function(f"() => {bottom} <= {height}")  # once the page has come to rest
    matrix = page.locator(".st-key-playground-matrix canvas")  # with nothing to choose
    expect(matrix).to_have_attribute("aria-label", re.compile(r"Arrow keys move\.$"))
    page.get_by_role("button", name="Pause").click()
    paused = page.get_by_text(re.compile(r"Paused at step \d+ of 400|at step \d+ of 400"))
    expect(paused).to_be_visible()
    before = int(re.search(r"step (\d+)", paused.inner_text())[1])
    page.get_by_role("button", name="Step", exact=True).click()
    expect(page.get_by_text(f"at step {before + 1} of 400")).to_be_visible()
    check_layout(page)
    wide = "() => document.scrollingElement.scrollWidth - window.innerWidth"
    assert page.evaluate(wide) <= 0

    page.get_by_text("Residual", exact=True).click()
    expect(page).to_have_url(re.compile("without=residual"))
    expect(page.get_by_role("button", name="Pause")).to_be_enabled()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused at step")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize(
    ("name", "waiting", "follows"),
    [("playground", "as it learns", "playground-output"), ("race", "as they learn", "race-track")],
)
def test_a_note_at_the_field_has_its_room_before_it_comes(
    page: Page, server: Server, name: str, waiting: str, follows: str, width: int, height: int
):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(server.link(name))
    expect(page.get_by_text(f"will be drawn here {waiting}")).to_be_visible()
    wait_for_rest(page)
    field = page.get_by_role("textbox", name="Your input")

    def place() -> float:
        """Returns where what follows begins, below the heading: the window may be scrolled."""
        heading, below = page.locator("h1"), page.locator(f".st-key-{follows}")
        return below.bounding_box()["y"] - heading.bounding_box()["y"]

    before = place()
    for text, note in (
        ("ZZ 9 ü", "ZZ, 9, ü were never seen in training"),
        ("hello world", "Put spaces between the letters."),
        ("a " * 70, "Your input has 71 tokens with its end mark, and the model takes at most 64"),
        ("", "Your input is empty, so the model reads a b c d e f instead."),
    ):
        field.fill(text)
        field.press("Enter")
        expect(page.locator(f".st-key-{name}-note")).to_contain_text(note)
        wait_for_rest(page)
        assert place() == pytest.approx(before, abs=1), note
        expect(field).to_have_value(text.strip())
    field.fill("c b a")
    field.press("Enter")
    expect(page.get_by_text("Your input is empty")).to_have_count(0)
    assert place() == pytest.approx(before, abs=1)
