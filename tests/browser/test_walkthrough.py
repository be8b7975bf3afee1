"""Browser test: walk through a forward pass by clicking the map, with arrow keys and with the links below."""

import re

import pytest
from app_server import Server
from controls import open_menu
from page_models import CLASSIC, PRONOUNS
from playwright.sync_api import Page, expect

from pages.shared.exhibit import PROVE

pytestmark = pytest.mark.browser


def step_box(page: Page, name: str):
    return page.locator(f'[data-step="{name}"]')


def test_a_click_on_the_map_opens_a_step_and_the_arrow_keys_walk_on(page: Page, server: Server):
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC))
    expect(page.get_by_role("heading", name="Words become numbers")).to_be_visible()
    expect(step_box(page, "encoder.ids")).to_have_attribute("aria-current", "step")

    step_box(page, "decoder.cross.qkv").click()  # the folded block
    expect(page.get_by_role("heading", name="Queries, keys and values")).to_be_visible()
    expect(page).to_have_url(re.compile(r"station=decoder\.cross\.qkv"))
    step_box(page, "decoder.cross.weights").click()  # unfolded by now
    expect(page.get_by_role("heading", name="Softmax: weights that sum to 1")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(3)
    open_menu(page, "step-numbers", PROVE)
    expect(page.get_by_text("The equation gives what the pass computed")).to_be_visible()
    page.keyboard.press("Escape")

    chosen = step_box(page, "decoder.cross.weights")
    expect(chosen).to_have_attribute("aria-current", "step")
    chosen.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="Values, mixed by these weights")).to_be_visible()
    expect(step_box(page, "decoder.cross.context")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("heading", name="Softmax: weights that sum to 1")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("heading", name="Softmax: what comes next")).to_be_visible()


@pytest.mark.slow
def test_next_walks_on_and_a_reload_stays_there(page: Page, server: Server):
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC, station="encoder.self.masked", layer=1))
    expect(page.get_by_role("heading", name="Masking: hide what must not be seen")).to_be_visible()
    page.get_by_role("button", name="Next: Softmax").first.click()
    expect(page).to_have_url(re.compile(r"station=encoder\.self\.weights"))
    page.reload()
    expect(page.get_by_role("heading", name="Softmax: weights that sum to 1")).to_be_visible()
    expect(page.get_by_text("Encoder · layer 1 · self-attention · head 0")).to_be_visible()


@pytest.mark.slow
def test_a_switched_part_is_marked_and_the_page_does_not_overflow(page: Page, server: Server):
    page.set_viewport_size({"width": 900, "height": 900})
    page.goto(
        server.link(
            "walkthrough", model=PRONOUNS, text=CLASSIC, station="decoder.cross.context", switch="off:decoder.0.cross:0"
        )
    )
    expect(page.get_by_text("numbers here moved by up to")).to_be_visible()
    expect(step_box(page, "decoder.cross.context").locator(".flag")).to_have_count(1)
    widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths[0] <= widths[1]


@pytest.mark.slow
def test_with_the_causal_mask_off_each_step_is_shown_in_its_own_pass(page: Page, server: Server):
    at = {"model": PRONOUNS, "text": CLASSIC, "switch": "mask:causal", "station": "decoder.probabilities", "step": 5}
    page.goto(server.link("walkthrough", **at))
    expect(page.get_by_text("Step 5’s own pass: the 5 tokens written before it, none after.")).to_be_visible()
    open_menu(page, "step-numbers", PROVE)
    expect(page.get_by_text("4 checks, run just now: all hold.")).to_be_visible()


@pytest.mark.slow
def test_a_row_is_followed_into_the_columns_that_it_meets(page: Page, server: Server):
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC, station="encoder.self.context", token=8))
    product = page.locator(".st-key-walk-product .root")
    expect(product).to_have_attribute("data-row", "8")  # the followed token's row, until one points elsewhere
    canvas = product.locator("canvas")
    canvas.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    expect(product).to_have_attribute("data-row", "7")
    expect(product).to_have_attribute("data-column", "1")
    expect(product.locator(".told")).to_contain_text("because (7), dimension 1")
    expect(product.locator(".told")).to_contain_text("the sum of 14 products")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + 40)  # in the right factor, near its last column
    expect(product).to_have_attribute("data-row", "")
    expect(product.locator(".told")).to_contain_text("This column meets every row of weights.")


def test_numbers_of_the_pass_move_along_the_arrows_into_the_next_step(page: Page, server: Server):
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC, station="decoder.self.add", step=10))
    expect(step_box(page, "decoder.self.add")).to_have_attribute("aria-current", "step")  # drawn: they begin there
    page.get_by_role("button", name="Next: Q, K, V").first.click()
    expect(page.locator(".root[data-moved]")).to_have_attribute(
        "data-moved", re.compile(r"^x: \S+ \S+ \S+ … \| memory: ")
    )
    expect(page.locator(".moving")).to_have_count(0)  # they have arrived


OVERLAPS = """box => {
  const root = box.getRootNode();
  const seen = (window.overlaps = []);
  requestAnimationFrame(function look() {
    const frames = [...root.querySelectorAll(".moving > g")]
      .filter((chip) => Number(chip.getAttribute("opacity")) > 0)
      .map((chip) => chip.querySelector("rect").getBoundingClientRect());
    if (frames.length === 2) {
      const [one, other] = frames;
      seen.push(one.bottom > other.top && other.bottom > one.top && one.right > other.left && other.right > one.left);
    }
    requestAnimationFrame(look);
  });
}"""
"""Notes of each frame in which two numbers are on their way whether one covers the other."""


@pytest.mark.slow
def test_numbers_that_arrive_together_do_not_cover_each_other(page: Page, server: Server):
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC, station="encoder.self.qkv"))
    step_box(page, "encoder.self.qkv").evaluate(OVERLAPS)
    page.get_by_role("button", name="Next: MatMul").first.click()
    expect(page.locator(".root[data-moved]")).to_be_attached()
    expect(page.locator(".moving")).to_have_count(0)
    seen = page.evaluate("window.overlaps")
    assert seen and not any(seen)


@pytest.mark.slow
def test_nothing_moves_where_the_visitor_wants_no_motion(page: Page, server: Server):
    page.emulate_media(reduced_motion="reduce")
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC, station="decoder.self.add"))
    page.get_by_role("button", name="Next: Q, K, V").first.click()
    expect(step_box(page, "decoder.cross.qkv")).to_have_attribute("aria-current", "step")
    expect(page.locator(".root[data-moved]")).to_have_count(0)


@pytest.mark.slow
def test_the_walk_plays_by_itself_until_it_is_paused(page: Page, server: Server):
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC))
    page.get_by_role("button", name="Play the walk").click()
    expect(step_box(page, "encoder.embedding")).to_have_attribute("aria-current", "step")
    expect(step_box(page, "encoder.positions")).to_have_attribute("aria-current", "step")  # by itself
    page.get_by_role("button", name="Pause the walk").click()
    page.wait_for_timeout(4000)
    expect(step_box(page, "encoder.positions")).to_have_attribute("aria-current", "step")


@pytest.mark.slow
def test_three_tokens_from_input_to_output_fit_on_one_screen(page: Page, server: Server):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(server.link("walkthrough", model=PRONOUNS, text=CLASSIC))
    page.get_by_text("Three tokens at a glance").click()
    expect(page).to_have_url(re.compile(r"show=overview"))
    figure = page.locator(".st-key-trace-overview .js-plotly-plot")
    expect(figure).to_be_visible()
    box = figure.bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= 800 and box["x"] + box["width"] <= 1280
