"""Browser test of the race: both sides move without a run of the page, and its end leads to both models."""

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
  for (const side of ["left", "right"]) {
    const chips = document.querySelector(`.st-key-race-${side}-chips`);
    const step = chips && /Output at step ([\\d,]+)/.exec(text(chips))?.[1];
    if (step) ((window.steps ??= {})[side] ??= new Set()).add(step);
  }
  for (const name of ["validation-loss", "exact-match"]) {
    const curve = document.querySelector(`.st-key-race-curve-${name}`);
    const roots = [...(curve?.querySelectorAll("*") ?? [])].map((one) => one.shadowRoot).filter(Boolean);
    const count = roots.flatMap((root) => [...root.querySelectorAll(".mark")]).length;
    if (count) ((window.marks ??= {})[name] ??= new Set()).add(count);
  }
}"""
"""Notes the steps of both outputs, and the numbers of points of both curves, that are on the screen."""


def test_both_sides_move_by_their_streams_and_the_end_leads_to_both_models(page: Page, server: Server):
    page.goto(server.link("race"))
    page.get_by_role("radio", name="Without positions").click()
    expect(page).to_have_url(re.compile("expected=right"))
    page.evaluate(f"() => void setInterval({STEPS}, 20)")
    page.get_by_role("button", name="Start the race").click()
    expect(page).to_have_url(re.compile("right_run="))
    wait_for_trainers(page, server.runs)
    expect(page.get_by_text("With positions was first")).to_be_visible()
    expect(page.get_by_text("You expected something else.")).to_be_visible()
    # The page itself looks once in five seconds: what moved more often came by the streams.
    assert page.evaluate("() => ['left', 'right'].map((side) => window.steps[side].size >= 20)") == [True, True]
    assert page.evaluate("() => Object.values(window.marks).map((seen) => seen.size >= 10)") == [True, True]
    for side in ("left", "right"):
        expect(page.locator(f".st-key-race-{side}").get_by_text("Output at step 400")).to_be_visible()
    page.get_by_role("link", name="Look into both").click()
    expect(page).to_have_url(re.compile("/two-at-once"))
    expect(page).to_have_url(re.compile("other=reverse"))
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value("a b c d e f")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_start_pause_and_turn_a_knob_of_one_side_without_a_jump(page: Page, server: Server, width: int, height: int):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(server.link("race"))
    expect(page.get_by_text("which one gets it right first?")).to_be_visible()
    expect(page.get_by_text("will be drawn here as they learn")).to_be_visible()  # the last part of the page
    wait_for_rest(page)
    watch_layout(page)
    page.get_by_role("button", name="Start the race").click()
    for side in ("left", "right"):
        expect(page.locator(f".st-key-race-{side}").get_by_text(re.compile("Output at step [1-9]"))).to_be_visible()
        expect(page.locator(f".st-key-race-{side}").get_by_text("Last layer's clearest head, now head")).to_be_visible()
    expect(page.locator(".st-key-race-curve-exact-match path").first).to_be_attached()
    if width == 1280:  # one screen holds all that moves
        for part in ("left-matrix", "right-matrix", "curve-exact-match"):
            bottom = f"document.querySelector('.st-key-race-{part}').getBoundingClientRect().bottom"
            page.wait_for_function(f"() => {bottom} <= {height}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    check_layout(page)
    assert page.evaluate("() => document.scrollingElement.scrollWidth - window.innerWidth") <= 0
    page.locator(".st-key-race-right").get_by_role("button", name="Change").click()
    page.get_by_text("Residual", exact=True).click()
    expect(page).to_have_url(re.compile("residual"))
    expect(page.get_by_role("button", name="Start the race")).to_be_visible()
    expect(page.get_by_role("heading", name="Without positions, without residual connections")).to_be_visible()
    assert "_run=" not in page.url
