"""axe-core finds no serious violation on any page as it opens, nor in what opens over it, light and dark; each page has
one heading of the first level, and each term there says what it means."""

from collections.abc import Iterator
from typing import Literal

import pytest
from app_server import Server
from controls import menus, wait_for_rest
from page_checks import darken, load_axe, serious, unexplained_terms
from page_models import REVERSE
from playwright.sync_api import Page, expect

from pages.shared.registry import PAGES, RegisteredPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

POPOVER = "[data-testid=stPopoverBody]"


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.url)
def test_axe_finds_nothing_serious_and_every_term_is_explained(page: Page, server: Server, entry: RegisteredPage):
    page.emulate_media(color_scheme="light")
    open_page(page, server, entry)
    found = {"as it opens": serious(page)}
    if not entry.only_for_several:
        found["terms"] = unexplained_terms(page)
        page.keyboard.press("Escape")  # closes what explains the last one
    found["a figure's menu"] = serious_in_a_menu(page)
    darken(page)
    found |= {"in the dark": serious(page), "a figure's menu in the dark": serious_in_a_menu(page)}
    assert not any(found.values()), found


def serious_in_a_menu(page: Page) -> list[str]:
    """Opens the menu of the page's first figure at its last entry, and closes it again."""
    if not menus(page).count():
        return []
    menus(page).first.click()
    page.locator(POPOVER).get_by_role("radio").last.click()
    found = serious(page, within=POPOVER)
    page.keyboard.press("Escape")
    expect(page.locator(POPOVER)).to_be_hidden()
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_what_opens(page: Page, server: Server, scheme: Literal["light", "dark"]):
    page.emulate_media(color_scheme=scheme)
    page.goto(server.link("attention", model=REVERSE, text="a b c"))
    expect(page.locator(".st-key-head canvas")).to_be_visible()
    load_axe(page)
    found = {name: serious(page, within=within if scheme == "dark" else None) for name, within in opened(page)}
    assert not any(found.values()), found


def opened(page: Page) -> Iterator[tuple[str, str | None]]:
    """Opens each thing that the Attention page can open, after what was open before, and yields its name and where the
    page changed; None for all of it."""
    popover = page.locator(POPOVER)
    for name, button, role in (
        ("the model picker", page.locator(".st-key-model-picker").get_by_role("button"), ""),
        ("a figure's menu", menus(page).first, "radio"),
        ("the drawer", page.get_by_role("button", name="More controls"), "tab"),
    ):
        button.first.click()
        expect(popover).to_be_visible()
        yield name, POPOVER
        for choice in popover.get_by_role(role).all() if role else []:
            choice.click()
            yield f"{name}: {choice.inner_text()}", POPOVER
        page.keyboard.press("Escape")
        expect(popover).to_be_hidden()
    page.locator(".st-key-head canvas").click(position={"x": 20, "y": 20})
    expect(page.locator(".st-key-entry-parts")).to_be_visible()
    yield "an entry", None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_would_find_faint_text(page: Page, server: Server, scheme: Literal["light", "dark"]):
    page.emulate_media(color_scheme="light")
    open_page(page, server, PAGES[0])
    if scheme == "dark":
        darken(page)
    page.add_style_tag(content="[data-testid=stMain] h1 { color: gray !important; opacity: 0.5 }")
    assert "color-contrast" in "\n".join(serious(page))


def open_page(page: Page, server: Server, entry: RegisteredPage) -> None:
    """Opens a page, waits until it has drawn all, and loads axe-core into it."""
    page.goto(server.link("" if entry is PAGES[0] else entry.url))
    expect(page.locator("h1")).to_be_visible()  # and it is the only one
    expect(page.get_by_text("Page not found")).to_have_count(0)
    wait_for_rest(page, 1000)
    load_axe(page)
