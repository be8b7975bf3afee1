"""The Runs page in a real browser: its two halves, reached by a click, a link and a reload."""

import re

import pytest
from app_server import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_sweeps_open_by_a_click_and_stay_after_a_reload(server: Server, page: Page) -> None:
    page.goto(server.link("runs"))
    page.get_by_role("radio", name="Sweeps").click()
    expect(page.get_by_text("No sweep yet")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]tab=Sweeps(&|$)"))
    page.reload()
    expect(page.get_by_text("No sweep yet")).to_be_visible()
    page.get_by_role("radio", name="Runs", exact=True).click()
    expect(page.get_by_text("No sweep yet")).to_be_hidden()


@pytest.mark.slow
def test_an_old_link_to_the_sweeps_still_opens_them(server: Server, page: Page) -> None:
    page.goto(server.link("runs", view="Sweeps"))
    expect(page.get_by_text("No sweep yet")).to_be_visible()
    expect(page).not_to_have_url(re.compile(r"[?&]view="))
