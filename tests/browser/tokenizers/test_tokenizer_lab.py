"""Browser test of the Tokenizer lab: a text is cut, its merges are stepped through, a dot of the map is clicked."""

import re

import pytest
from app_server import Server
from controls import click_point, menus, open_menu
from page_models import REVERSE
from playwright.sync_api import Page, expect

from pages.shared.exhibit import PROVE

pytestmark = pytest.mark.browser


def test_cut_a_text_step_through_its_merges_and_click_a_dot(page: Page, server: Server):
    page.goto(server.link("tokenizers"))
    text = page.get_by_role("textbox", name="Text")
    text.fill("The hedgehog")
    text.press("Enter")
    expect(page.get_by_text("Words: 2 tokens")).to_be_visible()
    expect(page).to_have_url(re.compile("text=The"))

    page.get_by_role("radio", name="BPE's merges").click()
    expect(page.get_by_text(re.compile("^Step 1?[0-9] of"))).to_be_visible()
    page.get_by_role("slider").last.press("ArrowLeft")
    expect(page).to_have_url(re.compile("step=[0-9]+"))
    open_menu(page, menus(page).first, PROVE)
    expect(page.get_by_text("5 checks, run just now: all hold.")).to_be_visible()
    page.keyboard.press("Escape")

    page.goto(server.link("tokenizers", section="map", model=REVERSE, token="k"))
    dots = page.locator(".st-key-embedding-map .scatterlayer .trace").first.locator(".point")
    expect(dots).to_have_count(20)
    click_point(page, dots.nth(3))
    expect(page).not_to_have_url(re.compile("token=k"))
    expect(page).to_have_url(re.compile("token=[a-z]"))
