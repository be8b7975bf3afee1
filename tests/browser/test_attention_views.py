"""The pictures of attention in a real browser with no network: bertviz's three views, and cells that can be clicked."""

import io

import numpy as np
import pytest
from app_server import Server
from controls import open_drawer, open_menu
from page_models import CLASSIC, PRONOUNS
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from pages.shared.exhibit import EXPLAIN
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.lab import load

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MODEL = "pronouns-en-fr" if (SHIPPED_FOLDER / "pronouns-en-fr").exists() else PRONOUNS


@pytest.fixture(autouse=True)
def same_runs(server: Server, monkeypatch):
    """Lets the tests load what the server loads."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(server.runs))


def open_picture(page: Page, server: Server, **parameters: object) -> None:
    page.goto(server.link("attention", **{"model": MODEL, "text": CLASSIC, **parameters}))


def canvas(page: Page) -> Locator:
    return page.locator(".st-key-head canvas")


def cell_at(page: Page, row: int, column: int) -> dict[str, float]:
    """The middle of a cell on the canvas, of which the frame around the chosen cell gives the size."""
    n_rows, n_columns = load(MODEL).inspect(CLASSIC).cross.weights.shape[2:]
    box = canvas(page).bounding_box()
    assert box
    return {"x": (column + 0.5) * box["width"] / n_columns, "y": (row + 0.5) * box["height"] / n_rows}


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_the_head_view_draws(page: Page, server: Server, kind: str):
    open_picture(page, server, kind=kind, picture="bertviz", switch=f"off:{site(kind)}:0")
    drawn = page.frame_locator("iframe")
    expect(drawn.get_by_text("animal", exact=True).first).to_be_visible()
    expect(drawn.locator("svg #attention line").first).to_be_attached()
    colours = drawn.locator("svg > g:last-child > rect").evaluate_all("all => all.map(e => e.getAttribute('fill'))")
    assert len(colours) == 4 and colours[0] == "#686b73" and "#686b73" not in colours[1:]


def test_the_model_view_draws_every_head_and_enlarges_one(page: Page, server: Server):
    open_picture(page, server, picture="bertviz-model", switch=["off:decoder.1.cross:2", "mean:decoder.1.cross:3"])
    drawn = page.frame_locator("iframe")
    expect(drawn.locator(".attn_background")).to_have_count(8)
    off = drawn.locator("g:has(> #attn_background_1_2) line").first
    expect(off).to_have_attribute("stroke", "#686b73")
    expect(drawn.get_by_role("button", name="layer 1, head 3, at its mean")).to_have_count(1)
    heads = drawn.get_by_role("button", name="layer 1, head 2, switched off")
    heads.focus()
    heads.press("Enter")
    expect(drawn.get_by_text("Layer 1, Head 2")).to_be_visible()
    expect(drawn.get_by_text("animal", exact=True).first).to_be_visible()
    expect(drawn.locator(".detail line").first).to_have_attribute("stroke", "#686b73")


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_the_neuron_view_draws_q_times_k_and_folds(page: Page, server: Server, kind: str):
    open_picture(page, server, kind=kind, picture="bertviz-neuron", layer=0)
    drawn = page.frame_locator("iframe")
    expect(drawn.get_by_text("Query q")).to_be_visible()
    products = drawn.locator("#expanded #product .element")
    expect(products.first).to_be_visible()
    d_head = 128 // 4 if MODEL == "pronouns-en-fr" else 8
    n_keys = len(load(MODEL).inspect(CLASSIC).attention(kind).keys)  # type: ignore[arg-type]
    expect(products).to_have_count(n_keys * d_head)
    expect(drawn.get_by_label("Layer")).to_have_value("0")
    token = drawn.locator("#expanded #leftText > g[tabindex='0']")
    token.focus()
    token.press("Enter")
    expect(drawn.locator("#collapsed .attn-line-group").first).to_be_visible()
    expect(drawn.get_by_text("Query q")).to_be_hidden()
    drawn.get_by_label("Head").select_option("3")
    expect(drawn.locator("#collapsed .attn-line-group").first).to_be_attached()


def test_a_cell_of_the_matrix_is_pointed_at_and_clicked(page: Page, server: Server):
    open_picture(page, server, layer=1, head=2)
    expect(canvas(page)).to_be_visible()
    seen = load(MODEL).inspect(CLASSIC).cross
    canvas(page).hover(position=cell_at(page, 3, 2))  # type: ignore[arg-type]
    expect(page.get_by_text(f"weight {seen.weights[1, 2, 3, 2]!s}")).to_be_visible()
    canvas(page).click(position=cell_at(page, 3, 2))  # type: ignore[arg-type]
    expect(page.get_by_text("exactly the same as in the picture")).to_be_visible()
    assert "cell=3%2C2" in page.url


def test_the_matrix_is_used_by_keyboard_alone(page: Page, server: Server):
    open_picture(page, server, layer=1, head=2)
    canvas(page).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text("exactly the same as in the picture")).to_be_visible()
    assert "cell=2%2C1" in page.url


def test_a_click_on_combined_heads_opens_the_strongest_one(page: Page, server: Server):
    open_picture(page, server, layer=1, combine="max")
    expect(page.get_by_text("largest of all heads")).to_be_visible()
    canvas(page).click(position=cell_at(page, 4, 5))  # type: ignore[arg-type]
    expect(page.get_by_text("recorded weights. Softmax")).to_be_visible()
    head = int(load(MODEL).inspect(CLASSIC).cross.weights[1, :, 4, 5].argmax())
    assert (f"head={head}" in page.url or head == 0) and "cell=4%2C5" in page.url and "combine=max" in page.url


def test_a_click_in_a_rollout_does_nothing_and_the_page_says_why(page: Page, server: Server):
    open_picture(page, server, show="rollout")
    expect(page.get_by_text("A click does nothing here")).to_be_visible()
    canvas(page).click(position=cell_at(page, 1, 1))  # type: ignore[arg-type]
    expect(page.get_by_role("button", name="Close")).to_have_count(0)
    assert "cell" not in page.url


def test_a_threshold_and_heads_are_chosen_and_reopened_by_link(page: Page, server: Server):
    open_picture(page, server)
    open_drawer(page, "Picture")
    field = page.get_by_role("spinbutton", name="Hide below")
    field.fill("0.3")
    field.press("Enter")
    expect(page.get_by_text("Entries below 0.3 are not drawn")).to_be_visible()
    assert "threshold=0.3" in page.url
    page.goto(page.url)
    expect(page.get_by_text("Entries below 0.3 are not drawn")).to_be_visible()


def site(kind: str) -> str:
    return {"encoder_self": "encoder.1.self", "decoder_self": "decoder.1.self", "cross": "decoder.1.cross"}[kind]


@pytest.mark.parametrize(
    ("shown", "figure"),
    [
        ("weights", "head-matrix"),
        ("norms", "head-matrix"),
        ("rollout", "attention-rollout"),
        ("entropy", "attention-entropy"),
    ],
)
def test_the_equations_of_an_explanation_fit_into_the_menu(page: Page, server: Server, shown: str, figure: str):
    page.set_viewport_size({"width": 1360, "height": 900})
    page.goto(server.link("attention", model=PRONOUNS, text=CLASSIC, show=shown))
    open_menu(page, figure, EXPLAIN)
    equations = page.locator(".katex-display")
    expect(equations).to_have_count(2 if shown == "rollout" else 1)
    expect(equations.last).to_be_visible()
    hidden = equations.evaluate_all("found => found.map(one => one.scrollWidth - one.clientWidth)")
    assert max(hidden) <= 2  # the margin after a slanted last letter


def test_a_chosen_option_is_not_cut_in_its_box(page: Page, server: Server):
    open_picture(page, server, specials="renormalised", show="norms", combine="max")
    open_drawer(page, "Picture")
    chosen = page.locator(".st-key-choose-specials input")
    expect(chosen).to_have_value("Left out, rescaled")
    for key in ("specials", "show", "combine"):
        shown = page.locator(f".st-key-choose-{key} [data-testid=stSelectbox] input")
        assert shown.evaluate("input => input.scrollWidth - input.clientWidth") <= 0, key


def test_the_mark_of_a_word_start_keeps_away_from_the_probability_below(page: Page, server: Server):
    page.goto(server.link("attention", model="emoji-en-fr", text="grinning face", switch="off:decoder.0.cross:1"))
    chip = page.locator(".token:has(.mark):has(.probability)").first
    expect(chip).to_be_visible()
    chip.evaluate("e => { e.querySelector('.mark').style.cssText = 'color: #f00; opacity: 1' }")
    chip.evaluate("e => { e.querySelector('.probability').style.color = '#00f' }")
    red, _, blue = np.asarray(Image.open(io.BytesIO(chip.screenshot())).convert("RGB")).astype(int).transpose(2, 0, 1)
    mark, number = (np.flatnonzero((ink > 100).any(axis=1)) for ink in (red - blue, blue - red))
    assert number.min() - mark.max() >= 4
