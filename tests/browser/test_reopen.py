"""Browser test: a saved view opens on the page it belongs to, appears in the address, and survives a reload."""

import re

import pytest
from app_server import Server
from controls import menus, open_menu, wait_for_rest
from page_models import CLASSIC, PRONOUNS, REVERSE
from playwright.sync_api import FilePayload, Page, expect

from pages.shared.exhibit import EXPORT
from pages.shared.url.packed_link import as_file

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FEW = ["off:decoder.0.cross:1"]
MANY = [f"forbid:encoder.{layer}.self:{query},{key}" for layer in (0, 1) for query in range(12) for key in range(6)]


def reopen(page: Page, content: str) -> None:
    open_menu(page, menus(page).first, EXPORT)
    page.get_by_text("Open a saved view").click()
    file: FilePayload = {"name": "view.json", "mimeType": "application/json", "buffer": content.encode()}
    page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(file)
    page.get_by_role("link", name=re.compile("Open it on")).click()


@pytest.mark.parametrize("switches", [FEW, MANY], ids=["few switches", "many switches"])
def test_a_view_opened_on_its_own_page_stands_in_the_address_and_survives_a_reload(
    switches, page: Page, server: Server
):
    page.goto(server.link("attention", model=REVERSE))
    view = {"model": PRONOUNS, "text": CLASSIC, "kind": "encoder_self", "layer": "0", "head": "3", "switch": switches}
    reopen(page, as_file("attention", view))
    shown = page.get_by_text("Encoder self-attention · layer 0 · head 3").first
    expect(shown).to_be_visible()
    expect(page.locator("[data-testid=stPopoverBody]")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"[?&]head=3(&|$)"))
    assert page.url.count("switch=") == len(switches)
    page.reload()
    expect(shown).to_be_visible()
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value(CLASSIC)
    assert page.url.count("switch=") == len(switches)


def test_what_the_page_alone_adds_is_reopened_too_and_a_change_goes_on_from_there(page: Page, server: Server):
    page.goto(server.link("heads", model=REVERSE, pairs=50))
    reopen(page, as_file("heads", {"model": REVERSE, "text": "a b c", "pairs": "50", "section": "alike"}))
    expect(page.get_by_text("Group heads up to a mean distance of")).to_be_visible()
    expect(page).to_have_url(re.compile(r"section=alike"))
    page.reload()
    expect(page.get_by_text("Group heads up to a mean distance of")).to_be_visible()


def test_home_is_reopened_as_home(page: Page, server: Server):
    page.goto(server.link("attention", model=REVERSE))
    reopen(page, as_file("home", {"model": PRONOUNS, "text": CLASSIC, "layer": "0"}))
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value(CLASSIC)
    expect(page.get_by_text("Lines are cross-attention, layer 0")).to_be_visible()
    expect(page).not_to_have_url(re.compile("attention"))
    page.goto(server.link("", model=PRONOUNS, text="The cat slept.", layer=0))
    expect(page.get_by_text("Lines are cross-attention, layer 0")).to_be_visible()


@pytest.mark.parametrize("where", ["attention", "heads", "masks", "walkthrough", "positions", ""])
def test_all_of_what_is_taken_away_is_within_reach(where, page: Page, server: Server):
    page.goto(server.link(where, model=REVERSE, text="a b c"))
    for width, height in ((1280, 900), (900, 700)):
        page.set_viewport_size({"width": width, "height": height})
        wait_for_rest(page)  # a menu opened while the page is laid out anew closes again
        open_menu(page, menus(page).last, EXPORT)
        panel = page.locator("[data-testid=stPopoverBody]")
        expect(panel.get_by_text("The same in Python")).to_be_visible()
        panel.get_by_text("Open a saved view").click()
        panel.locator("[data-testid=stFileUploaderDropzone]").click(trial=True)
        for name in ("PNG", "HTML", "NPZ"):
            panel.get_by_role("button", name=name, exact=True).click(trial=True)
        box = panel.bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= height
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        panel.get_by_text("Open a saved view").click()
        page.keyboard.press("Escape")
        expect(panel).to_be_hidden()
