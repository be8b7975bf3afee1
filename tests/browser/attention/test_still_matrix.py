"""The Attention page in a browser: few stops before the matrix, which stays in place; what it brings is in sight."""

import pytest
from app_server import Server
from controls import wait_for_rest
from page_models import CLASSIC, PRONOUNS
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

MAX_STOPS = 8


def canvas(page: Page, server: Server, **parameters: object) -> Locator:
    """The matrix of the Attention page in a window of 1280 by 800."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(server.link("attention", model=PRONOUNS, text=CLASSIC, **parameters))
    drawn = page.locator(".st-key-head canvas")
    expect(drawn).to_be_visible()
    wait_for_rest(page, 1000)
    return drawn


def top(drawn: Locator) -> float:
    """The distance of the matrix from the top of the window."""
    box = drawn.bounding_box()
    assert box
    return box["y"]


def test_at_most_eight_stops_lie_before_the_matrix(page: Page, server: Server):
    drawn = canvas(page, server)
    page.evaluate(
        """() => {
          const main = document.querySelector("[data-testid=stMainBlockContainer]");
          main.tabIndex = -1;
          main.focus();
        }"""
    )
    is_focused = "canvas => canvas.getRootNode().activeElement === canvas"
    stops = 0
    while not drawn.evaluate(is_focused) and stops <= 2 * MAX_STOPS:
        page.keyboard.press("Tab")
        stops += 1
    assert stops - 1 <= MAX_STOPS


@pytest.mark.parametrize(
    ("off", "on"), [("Head 1", "Head 1"), ("Switch all 4 off", "Switch all 4 on")], ids=["one head", "all heads"]
)
def test_a_switch_leaves_the_matrix_where_it_is(page: Page, server: Server, off: str, on: str):
    drawn = canvas(page, server, layer=0, head=1)
    before = top(drawn)
    page.get_by_text(off, exact=True).click()
    expect(page.locator(".st-key-aligned")).to_be_visible()
    wait_for_rest(page, 1000)
    assert abs(top(drawn) - before) < 1
    page.get_by_text(on, exact=True).click()
    expect(page.locator(".st-key-aligned")).to_have_count(0)
    wait_for_rest(page, 1000)
    assert abs(top(drawn) - before) < 1


@pytest.mark.parametrize("row", [0.5, -0.5], ids=["first row", "last row"])
def test_the_explanation_of_a_clicked_entry_opens_in_sight(page: Page, server: Server, row: float):
    drawn = canvas(page, server, layer=0, head=1)
    if row < 0:
        page.locator(".st-key-head-matrix-menu").scroll_into_view_if_needed()
    size = drawn.bounding_box()
    assert size
    n_rows = page.locator(".st-key-output li").count() or 1
    height = size["height"] / n_rows
    drawn.click(position={"x": size["width"] / 2, "y": 5 if row > 0 else size["height"] - min(height, 10) / 2})
    card = page.locator(".st-key-entry-card")
    expect(card.get_by_text("attended to")).to_be_visible()
    wait_for_rest(page, 1000)
    box = card.bounding_box()
    assert box and box["y"] >= 0 and box["y"] + box["height"] <= 800
