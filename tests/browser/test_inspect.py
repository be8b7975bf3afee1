"""Browser test of the Attention page: type a sentence, see attention, switch a head off."""

import re

import pytest
from app_server import Server
from controls import open_drawer, wait_for_translation
from page_models import CLASSIC, PRONOUNS, WIDE
from playwright.sync_api import Page, expect

from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.lab import load

pytestmark = [pytest.mark.browser, pytest.mark.smoke]

MODEL = "pronouns-en-fr" if (SHIPPED_FOLDER / "pronouns-en-fr").exists() else PRONOUNS


@pytest.fixture(autouse=True)
def same_runs(server: Server, monkeypatch):
    """Lets the tests load what the server loads."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(server.runs))


def type_sentence(page: Page, text: str) -> None:
    field = page.get_by_role("textbox", name="Sentence")
    field.fill(text)
    field.press("Enter")


def test_a_link_opens_inside_the_app_on_the_very_first_visit(page: Page, server: Server):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC, kind="encoder_self", layer=0))
    expect(page.get_by_text("Encoder self-attention · layer 0 · head 0")).to_be_visible()
    expect(page.get_by_role("link", name="Home")).to_be_visible()
    expect(page.get_by_role("link", name="Attention", exact=True)).to_be_visible()


def test_type_a_sentence_see_attention_switch_a_head_off(page: Page, server: Server):
    lab = load(MODEL)
    page.goto(server.link(model=MODEL))
    wait_for_translation(page, lab.translate([CLASSIC])[0])

    type_sentence(page, WIDE)
    wait_for_translation(page, lab.translate([WIDE])[0])
    expect(page).to_have_url(server.link(model=MODEL, text=WIDE))
    expect(page.locator(".st-key-home-lines path").first).to_be_attached()

    page.get_by_role("link", name="Attention", exact=True).click()
    expect(page.get_by_text("Cross-attention · layer 1 · head 0")).to_be_visible()
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value(WIDE)
    expect(page.locator(".st-key-head canvas")).to_be_visible()

    page.get_by_text("Head 0", exact=True).click()
    expect(page.get_by_role("button", name="cross-attention · layer 1 · head 0 off")).to_be_visible()
    effect = page.get_by_text(re.compile("The output (changed|did not change)"))
    expect(effect).to_be_visible()
    assert "switch=off%3Adecoder.1.cross%3A0" in page.url

    page.get_by_role("button", name="cross-attention · layer 1 · head 0 off").click()
    expect(effect).to_be_hidden()
    assert "switch" not in page.url


@pytest.mark.slow
def test_a_head_is_picked_in_the_grid_and_the_back_button_undoes_it(page: Page, server: Server):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC))
    expect(page.get_by_text("Cross-attention · layer 1 · head 0")).to_be_visible()
    page.get_by_label("layer 0, head 2", exact=True).click()
    expect(page.get_by_text("Cross-attention · layer 0 · head 2")).to_be_visible()
    page.get_by_text("Head 2", exact=True).click()
    expect(page.get_by_role("button", name="cross-attention · layer 0 · head 2 off")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("button", name="cross-attention · layer 0 · head 2 off")).to_be_hidden()


@pytest.mark.slow
def test_bertviz_draws_with_no_network(page: Page, server: Server):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC, kind="encoder_self", picture="bertviz"))
    drawn = page.frame_locator("iframe")
    expect(drawn.get_by_text("animal", exact=True).first).to_be_visible()
    expect(drawn.locator("svg line").first).to_be_attached()


def test_two_visitors_do_not_see_each_others_switches(browser, page: Page, server: Server):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC))
    other = browser.new_page()
    other.goto(server.link("attention", model=MODEL, text=CLASSIC, switch="mask:causal"))
    expect(other.get_by_role("button", name="causal mask off")).to_be_visible()
    type_sentence(page, WIDE)
    expect(page).to_have_url(server.link("attention", model=MODEL, text=WIDE))
    expect(page.get_by_role("button", name="causal mask off")).to_be_hidden()
    other.close()


@pytest.mark.slow
def test_a_popover_that_was_opened_once_takes_no_later_switch_back(page: Page, server: Server):
    """The fields of a closed popover are not in the page, and the browser goes on sending what they held."""
    page.goto(server.link("attention", model=MODEL, text=CLASSIC))
    chip = page.get_by_role("button", name="cross-attention · layer 1 · head 0 off")
    causal = page.get_by_role("button", name="causal mask off")
    open_drawer(page, "Switches")
    page.get_by_role("radio", name="Masks", exact=True).click()
    page.get_by_role("button", name="Causal", exact=True).click()
    expect(causal).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_text("Head 0", exact=True).click()
    expect(chip).to_be_visible()
    causal.click()
    expect(causal).to_be_hidden()
    open_drawer(page, "Picture")
    page.get_by_text("Lines", exact=True).click()
    expect(page.locator(".st-key-head-lines")).to_be_visible()
    page.get_by_text("Matrix", exact=True).click()
    expect(page.locator(".st-key-head canvas")).to_be_visible()
    expect(chip).to_be_visible()
    expect(causal).to_be_hidden()
    assert page.url.count("switch=") == 1


@pytest.mark.slow
def test_the_hint_below_a_long_sentence_stays_in_sight_while_its_tokens_scroll_on_a_phone(page: Page, server: Server):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server.link(model=MODEL, text=CLASSIC))
    hint = page.get_by_text("Point at a token, or press Tab")
    expect(hint).to_contain_text("More stands to the right: scroll sideways.")
    lines = page.locator(".st-key-home-lines .root")
    expect(lines).to_have_class(re.compile("scrolls"))
    lines.evaluate("root => (root.scrollLeft = 120)")
    box = hint.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390 - 40  # the edge fades
