"""Browser test of the page Before attention: from a Transformer to a recurrent model, and to the gradients of both."""

import re

import pytest
from app_server import Server
from controls import menus, open_menu
from page_models import REVERSE
from playwright.sync_api import Page, expect

from pages.shared.exhibit import PROVE

pytestmark = pytest.mark.browser


def test_go_from_a_transformer_to_the_vector_of_a_recurrent_model_and_to_gradients(page: Page, server: Server):
    page.goto(server.link("before-attention", model=REVERSE, text="a b c"))
    expect(page.get_by_text("It has no such vector")).to_be_visible()
    expect(page.get_by_text("Page not found")).to_have_count(0)
    page.get_by_role("link", name=re.compile("Open untrained-rnn .RNN, one vector")).click()
    chart = page.locator(".st-key-bottleneck")
    expect(chart.get_by_text("position in the sentence")).to_be_visible()
    open_menu(page, menus(page), PROVE)
    expect(page.get_by_text(re.compile("[0-9]+ checks, run just now: all hold"))).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="The gradient's reach").click()
    expect(page.locator(".ytitle", has_text="mean length of the gradient")).to_be_visible()
    expect(page).to_have_url(re.compile("section=gradient"))
    expect(page.get_by_text(re.compile("the length of the gradient is multiplied by"))).to_be_visible()
