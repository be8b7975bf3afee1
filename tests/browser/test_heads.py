"""Browser test of the Heads page: its table is sorted, and a head opens on the Attention page."""

import re

import pytest
from app_server import Server
from controls import click_point
from page_models import CLASSIC, PRONOUNS
from playwright.sync_api import Page, expect

from transformer.checkpoints.settings import SHIPPED_FOLDER

pytestmark = pytest.mark.browser

MODEL = "pronouns-en-fr" if (SHIPPED_FOLDER / "pronouns-en-fr").exists() else PRONOUNS


def test_sort_the_table_and_open_a_head_on_the_attention_page(page: Page, server: Server):
    page.goto(server.link("heads", model=MODEL, text=CLASSIC, pairs=50))
    expect(page.get_by_text(re.compile("Measured on 50 of [0-9,]+ validation pairs"))).to_be_visible()
    table = page.locator(".st-key-heads-table table")
    rows = table.locator("tbody tr")
    expect(rows.first).to_contain_text("encoder 0 · head 0")

    table.get_by_role("button", name="Diag.").click()
    expect(table.locator("th[aria-sort=descending]")).to_have_text("Diag.")
    place = [*table.locator("thead th").all_inner_texts()].index("Diag.")
    shown = [
        float(re.findall(r"[\d.]+", text)[0]) for text in rows.locator(f"> :nth-child({place + 1})").all_inner_texts()
    ]
    assert shown == sorted(shown, reverse=True) and len(set(shown)) > 1
    expect(page).to_have_url(re.compile(r"sort=-diagonal"))

    name = rows.first.get_by_role("link").inner_text()
    rows.nth(1).locator("td").nth(2).click()  # selects it
    expect(page.get_by_role("heading", name=rows.nth(1).get_by_role("link").inner_text())).to_be_visible()
    rows.first.get_by_role("link").click()
    stack, layer, rest, head = re.fullmatch(r"(encoder|decoder) (\d+)(.*) · head (\d+)", name).groups()  # type: ignore[union-attr]
    expect(page).to_have_url(re.compile(r"/attention\?"))
    kind = "cross" if "cross" in rest else f"{stack}_self"
    assert (
        (f"kind={kind}" in page.url or kind == "cross") and f"layer={layer}" in page.url and f"head={head}" in page.url
    )
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value(CLASSIC)


@pytest.mark.slow
def test_a_click_in_the_map_selects_a_head(page: Page, server: Server):
    page.goto(server.link("heads", model=MODEL, text=CLASSIC, pairs=50))
    expect(page.get_by_role("heading", name="decoder 1 cross · head 0")).to_be_visible()
    click_point(page, page.locator(".st-key-heads-map .point").nth(1))
    expect(page.get_by_role("heading", name="encoder 0 · head 1")).to_be_visible()
    assert "kind=encoder_self" in page.url


@pytest.mark.slow
def test_a_search_finds_the_smallest_set_and_its_link_switches_those_heads_off(page: Page, server: Server):
    page.goto(server.link("heads", model=MODEL, text=CLASSIC, section="smallest", goal="any"))
    expect(page.get_by_text("Decoded again without these heads")).to_be_visible()
    page.locator("[data-testid=stMain] [data-testid=stPageLink] a").first.click()
    expect(page).to_have_url(re.compile(r"/attention\?.*switch=off"))
    expect(page.get_by_text("The output changed.")).to_be_visible()
