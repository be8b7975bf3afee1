"""The way through the app: all pages in sight beside the page, and each page's next question."""

import re

import pytest
from app_server import Server
from page_models import REVERSE
from playwright.sync_api import Page, expect

from pages.shared.registry import BY_FOLDER, PAGES

pytestmark = pytest.mark.browser


def test_the_map_of_all_pages_fits_into_a_small_window(page: Page, server: Server):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(server.link("attention", model=REVERSE, text="a b c"))
    links = page.get_by_test_id("stSidebarNavLink")
    expect(links).to_have_text([entry.title for entry in PAGES if not entry.only_for_several])
    for link in links.all():
        expect(link).to_be_in_viewport(ratio=1)


def test_the_next_question_opens_the_page_that_answers_it_with_the_same_sentence(page: Page, server: Server):
    page.goto(server.link("attention", model=REVERSE, text="a b c d"))
    for folder in ("attention", "steps"):
        page.get_by_role("link", name=BY_FOLDER[folder].then.asks).click()
        expect(page.get_by_role("textbox", name="Sentence")).to_have_value("a b c d")
    expect(page).to_have_url(re.compile(rf"/walkthrough\?.*model={REVERSE}"))
