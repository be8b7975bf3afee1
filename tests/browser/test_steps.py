"""Decoder steps in a real browser: clicked bars are forced, the arrow keys step, a beam's result is stepped through."""

import re

import pytest
from app_server import Server
from controls import click_point
from page_models import REVERSE
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.browser

BARS = ".js-plotly-plot .barlayer .point path"


def parameter(page: Page, name: str, value: str) -> None:
    """Waits until the URL holds this parameter; the value is a pattern."""
    expect(page).to_have_url(re.compile(rf"[?&]{name}={value}(&|$)"))


def test_a_clicked_candidate_is_forced_and_stepped_through(server: Server, page: Page) -> None:
    page.goto(server.link("decoder-steps", model=REVERSE, text="a b c d", step=2))
    click_point(page, page.locator(BARS).nth(3))
    parameter(page, "roads", r"2%3A\d+")
    expect(page.get_by_text("was forced here")).to_be_visible()
    page.get_by_text("Candidates · click one").click()  # out of every field
    page.keyboard.press("ArrowRight")
    parameter(page, "step", "3")
    page.keyboard.press("ArrowLeft")
    parameter(page, "step", "2")


@pytest.mark.slow
def test_steps_taken_without_the_rest_of_the_page_are_known_to_it(server: Server, page: Page) -> None:
    page.goto(server.link("decoder-steps", model=REVERSE, text="a b c d"))
    on = page.locator(".st-key-step-on button")
    for step in (1, 2, 3):
        on.click()
        parameter(page, "step", str(step))
        expect(page.get_by_text(f"Write another token at step {step}")).to_be_visible()
    page.locator(".st-key-scale label").first.click()  # runs the whole page
    expect(page.get_by_text("probability, logarithmic")).to_be_visible()
    parameter(page, "step", "3")
    page.reload()
    expect(page.get_by_text("Write another token at step 3")).to_be_visible()


@pytest.mark.slow
def test_the_beam_grows_a_tree_and_a_result_is_stepped_through(server: Server, page: Page) -> None:
    page.goto(server.link("decoder-steps", model=REVERSE, text="a b c d", look="beam"))
    points = page.locator(".js-plotly-plot .scatterlayer .point")
    expect(points.first).to_be_visible()
    assert points.count() > 20
    click_point(page, points.nth(2))
    parameter(page, "node", r"\d+")
    expect(page.locator(".st-key-walk-hypothesis")).to_be_visible()
    page.get_by_role("button", name="Step through").nth(1).click()
    parameter(page, "road", "1")
    expect(page.get_by_text("was forced here")).to_be_visible()


@pytest.mark.slow
def test_a_wide_tree_shows_that_it_goes_on(server: Server, page: Page) -> None:
    page.goto(server.link("decoder-steps", model="pronouns-en-fr", look="beam"))
    tree = page.locator("[class*='st-key-beam-tree'][class*='-scroll']")
    expect(tree.locator(".scatterlayer .point").first).to_be_visible()
    assert tree.evaluate("e => e.scrollWidth > e.clientWidth"), "it is wider than its place here"
    fades = "e => getComputedStyle(e).maskImage.includes('gradient')"
    assert tree.evaluate(fades), "the right end fades out, as it goes on there"
    tree.evaluate("e => e.scrollTo(e.scrollWidth, 0)")
    page.wait_for_function(f"e => !({fades})(e)", arg=tree.element_handle())
    attention = page.locator(".st-key-hypothesis-attention-scroll")
    assert not attention.evaluate(fades), "it does not scroll"
    cells = attention.locator(".nsewdrag").bounding_box()
    frame = attention.bounding_box()
    assert cells is not None and frame is not None
    room = frame["y"] + frame["height"] - cells["y"] - cells["height"]
    assert 0 < room < 30, "its cells are smaller than in a wide column, and nothing is left blank below them"
    thumb = tree.evaluate("e => getComputedStyle(e, '::-webkit-scrollbar-thumb').backgroundColor")
    assert thumb == "rgba(128, 132, 149, 0.7)"


@pytest.mark.new_tab
def test_nothing_moves_under_a_click_when_the_code_of_the_chips_arrives_late(server: Server, page: Page) -> None:
    held: list[Route] = []
    page.route(re.compile(r"/BidiComponent\.[^/]*\.js$"), lambda route: held.append(route))
    page.goto(server.link("decoder-steps", model=REVERSE, text="a b c d", step=2))
    box = page.get_by_role("combobox", name="Write another token at step 2")
    expect(box).to_be_visible()
    expect(page.locator(BARS).first).to_be_visible()
    before = box.bounding_box()
    assert held, "this is the name of the code of components"
    for route in held:
        route.continue_()
    expect(page.locator(".st-key-so-far ol")).to_be_visible()
    assert box.bounding_box() == before
    box.scroll_into_view_if_needed()
    box.click()
    expect(page.get_by_role("option").first).to_be_visible()
