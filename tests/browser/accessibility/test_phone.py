"""On a phone, figures fit or say by keyboard that they go on, and a number keeps its sign on its line."""

import re

import pytest
from app_server import Server
from page_models import REVERSE
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

HIDDEN = "frame => frame.scrollWidth - frame.clientWidth"


@pytest.mark.slow
def test_masks_on_a_phone(page: Page, server: Server):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server.link("masks", model=REVERSE, text="m m a a m", beside="a b c d e\nt h e q r s t"))
    batch, masks = page.locator(".st-key-batch-tokens-scroll"), page.locator(".st-key-sentence-masks-scroll")
    expect(batch).to_have_attribute("tabindex", "0")
    expect(batch).to_have_attribute("aria-label", "figure; arrow keys scroll it")
    assert batch.evaluate(HIDDEN) > 0
    assert masks.evaluate(HIDDEN) == 0
    expect(masks).not_to_have_attribute("tabindex", re.compile(".*"))
    percent = page.get_by_text(re.compile("of them padding"))
    assert "16.7\u00a0%" in percent.inner_text()
