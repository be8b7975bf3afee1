"""Browser test of the Positions page: see the tables, resize them, break the positions, see the output change."""

import re

import numpy as np
import pytest
from app_server import Server
from page_models import PRONOUNS
from playwright.sync_api import Page, expect

from pages.shared.wording import effect
from transformer.analysis.positions.tables import sinusoids
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.figures import theme
from transformer.interventions import parse_intervention
from transformer.lab import load

pytestmark = pytest.mark.browser

MODEL, TEXT = ("reverse", "a b c d") if (SHIPPED_FOLDER / "reverse").exists() else (PRONOUNS, "The dog.")


@pytest.fixture(autouse=True)
def same_runs(server: Server, monkeypatch):
    """Lets the tests load what the server loads."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(server.runs))


def test_change_the_size_break_the_positions_see_the_output_change(page: Page, server: Server):
    page.goto(server.link("positions", model=MODEL, text=TEXT))
    drawn = page.locator(".st-key-tables .root")
    expect(drawn).to_have_attribute("data-drawn", re.compile(r"^\d+ × \d+"))
    before = drawn.get_attribute("data-drawn")
    slider = page.get_by_role("slider", name="d_model")
    slider.focus()
    slider.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"[?&]d_model=\d+(&|$)"))
    expect(drawn).not_to_have_attribute("data-drawn", before or "")

    page.get_by_text("Break it", exact=True).click()
    page.get_by_role("radio", name="Remove").click()
    expect(page.get_by_role("button", name="encoder positions · removed")).to_be_visible()
    comparison = load(MODEL).compare(TEXT, [parse_intervention("positions:encoder:remove")])
    expect(page.get_by_text(effect(comparison)[0].split("**")[1])).to_be_visible()
    page.get_by_role("button", name="encoder positions · removed").click()
    expect(page.get_by_text(re.compile("The output (changed|did not change)"))).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_tables_are_painted_and_read_exactly_by_pointer_and_by_keys(page: Page, server: Server, scheme):
    page.emulate_media(color_scheme=scheme)
    # Of a model without a learned twin, whose table may hold more than 1, where the colours then end.
    page.goto(server.link("positions", model=PRONOUNS, text="The dog.", d_model="16", length="10"))
    canvas = page.locator(".st-key-tables canvas").first
    expect(page.locator(".st-key-tables .root")).to_have_attribute("data-drawn", re.compile("^10 × 16"))
    ramp = [colour for _, colour in theme.diverging(scheme == "dark")]
    picture = "canvas => Array.from(canvas.getContext('2d').getImageData({}, {}, 1, 1).data.slice(0, 3))"
    width = canvas.evaluate("canvas => canvas.width")
    cell = (width - 58) / 16
    for column, wanted in ((0, ramp[5]), (1, ramp[10])):  # sin 0 = 0 and cos 0 = 1
        seen = canvas.evaluate(picture.format(round(52 + (column + 0.5) * cell), 16))
        assert max(abs(a - int(wanted[i : i + 2], 16)) for a, i in zip(seen, (1, 3, 5), strict=True)) <= 2
    exact = float(sinusoids(10, 16)[1, 1])
    canvas.hover(position={"x": 52 + 1.5 * cell, "y": 6 + 320 * 1.5 / 10})
    tip = page.locator(".st-key-tables .tip")
    expect(tip).to_contain_text("position 1, dimension 1")
    said = (tip.text_content() or "").split("value ")[1]
    assert np.float32(said) == np.float32(exact)
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    canvas.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        canvas.press(key)
    expect(page.locator(".st-key-tables .spoken")).to_contain_text("position 2, dimension 3; value ")
    curves = page.locator(".st-key-dimensions .root")
    curves.focus()
    curves.press("End")
    expect(curves.locator(".spoken")).to_contain_text("position 9: sinusoidal, dimension 4 (sine)")


@pytest.mark.slow
def test_a_link_with_broken_positions_opens_on_them(page: Page, server: Server):
    page.goto(server.link("positions", model=MODEL, text=TEXT, section="break", switch="positions:encoder:shuffle:1"))
    expect(page.get_by_role("button", name="encoder positions · shuffled, order 1")).to_be_visible()
    page.get_by_role("button", name="Another order").click()
    expect(page.get_by_role("button", name="encoder positions · shuffled, order 2")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("button", name="encoder positions · shuffled, order 1")).to_be_visible()


@pytest.mark.slow
@pytest.mark.skipif(not (SHIPPED_FOLDER / "reverse-learned").exists(), reason="the shipped models are not there")
def test_change_the_kind_break_the_positions_and_see_the_output_change(page: Page, server: Server):
    page.goto(server.link("positions", model="reverse", text=TEXT, section="break"))
    expect(page.get_by_role("radio", name="Remove")).to_be_visible()
    page.get_by_role("button", name="reverse", exact=True).click()
    page.get_by_text("reverse-learned", exact=True).click()
    expect(page).to_have_url(re.compile(r"model=reverse-learned"))
    page.get_by_role("radio", name="Shift", exact=True).click()
    expect(page.get_by_role("button", name="encoder positions · shifted by 1")).to_be_visible()
    page.get_by_role("radio", name="Remove").click()
    expect(page.get_by_role("button", name="encoder positions · removed")).to_be_visible()
    learned = load("reverse-learned").compare(TEXT, [parse_intervention("positions:encoder:remove")])
    assert learned.before.translation != learned.after.translation
    expect(page.get_by_text(effect(learned)[0].split("**")[1])).to_be_visible()


@pytest.mark.slow
@pytest.mark.skipif(not (SHIPPED_FOLDER / "reverse-learned").exists(), reason="the shipped models are not there")
def test_a_long_string_is_read_as_the_visitor_chooses(page: Page, server: Server):
    page.goto(server.link("positions", model="reverse-learned", text=TEXT, section="beyond", past="refuse"))
    expect(page.get_by_text("training reached 0 to 10")).to_be_visible()
    page.get_by_role("radio", name="Interpolate").click()
    expect(page.get_by_text("The trained rows 0 to 10 are stretched over all of them.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]past=interpolate(&|$)"))
