"""Browser test: switching heads off changes the translation, a click forbids an entry, a link reopens it all."""

import re

import pytest
from app_server import Server
from controls import open_drawer, open_menu, wait_for_rest
from page_models import CLASSIC, PRONOUNS
from playwright.sync_api import Browser, Page, expect

from pages.shared.exhibit import PROVE
from pages.shared.wording import effect
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.interventions import parse_intervention
from transformer.lab import load

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MODEL = "pronouns-en-fr" if (SHIPPED_FOLDER / "pronouns-en-fr").exists() else PRONOUNS
OTHER = "The cat slept."


@pytest.fixture(autouse=True)
def same_runs(server: Server, monkeypatch):
    """Lets the tests load what the server loads."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(server.runs))


def chip(page: Page, switch: str):
    return page.get_by_role("button", name=parse_intervention(switch).label().replace("\\", ""), exact=False)


def measured(switches: list[str]) -> str:
    """Computes what the page must say about these switches."""
    said, _ = effect(load(MODEL).compare(CLASSIC, list(map(parse_intervention, switches))))
    return re.sub(r"[*\\]", "", said).split(" the most:")[0]


def test_a_set_of_heads_goes_off_the_translation_changes_and_the_link_reopens_it(
    browser: Browser, page: Page, server: Server
):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC))
    open_drawer(page, "Switches")
    row = page.locator(".st-key-parts-decoder-1-cross")
    row.get_by_role("button", name="0", exact=True).click()
    expect(chip(page, "off:decoder.1.cross:0")).to_be_visible()
    row.get_by_role("button", name="3", exact=True).click()
    both = "off:decoder.1.cross:0,3"
    expect(chip(page, both)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text(measured([both]), exact=False).first).to_be_visible()
    comparison = load(MODEL).compare(CLASSIC, [parse_intervention(both)])
    lines = page.locator(".st-key-aligned li")
    expect(lines).to_have_count(len(comparison.alignment))
    expect(page.locator(".st-key-aligned .changed")).to_have_count(sum(map(sum, comparison.marks)))

    again = browser.new_page()
    again.goto(page.url)
    expect(chip(again, both)).to_be_visible()
    expect(again.get_by_text(measured([both]), exact=False).first).to_be_visible()
    again.close()


def test_a_cell_is_clicked_in_the_matrix_and_forbidden(page: Page, server: Server):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC, kind="encoder_self", layer=0))
    canvas = page.locator(".st-key-head canvas")
    expect(canvas).to_be_visible()
    canvas.click()
    page.get_by_role("button", name="Forbid this entry").click()
    expect(page.get_by_role("button", name="may not see key")).to_be_visible()
    assert "switch=forbid%3Aencoder.0.self%3A" in page.url
    page.get_by_role("button", name="may not see key").click()
    expect(page.get_by_role("button", name="may not see key")).to_be_hidden()


def test_one_click_on_a_cell_forbids_it_and_another_allows_it_by_mouse_and_keyboard(page: Page, server: Server):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC, kind="encoder_self", layer=0, head=1))
    canvas = page.locator(".st-key-head canvas")
    expect(canvas).to_be_visible()
    open_drawer(page, "An entry")
    page.get_by_text("Forbid it", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.locator("[data-testid=stPopoverBody]")).to_have_count(0)
    expect(page.get_by_text("to forbid it in all heads of layer 0")).to_be_visible()
    wait_for_rest(page)
    size, n = canvas.bounding_box(), len(load(MODEL).sentence(CLASSIC).ids)
    assert size
    where = {"x": size["width"] * 2.5 / n, "y": size["height"] * 1.5 / n}
    before = canvas.bounding_box()
    canvas.click(position=where)  # type: ignore[arg-type]
    expect(chip(page, "forbid:encoder.0.self:1,2")).to_be_attached()
    expect(page.get_by_text(measured(["forbid:encoder.0.self:1,2"]), exact=False).first).to_be_attached()
    expect(page.locator(".st-key-difference .js-plotly-plot")).to_be_attached()
    wait_for_rest(page)
    after = canvas.bounding_box()
    assert before and after and abs(after["y"] - before["y"]) < 3, "the matrix stays under the pointer"
    expect(page.get_by_text("forbidden by a switch").first).to_be_visible()
    assert "forbid%3Aencoder.0.self%3A1%2C2" in page.url
    canvas.click(position=where)  # type: ignore[arg-type]
    expect(chip(page, "forbid:encoder.0.self:1,2")).to_be_hidden()

    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(chip(page, "forbid:encoder.0.self:2,2")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(chip(page, "forbid:encoder.0.self:2,3")).to_be_visible()
    expect(chip(page, "forbid:encoder.0.self:2,2")).to_be_visible()
    page.keyboard.press("Enter")
    expect(chip(page, "forbid:encoder.0.self:2,3")).to_be_hidden()


def test_two_visitors_at_the_same_moment_see_their_own_switches_alone(browser: Browser, page: Page, server: Server):
    n_keys = len(load(MODEL).sentence(CLASSIC).ids)
    first = ["mean:decoder.1.cross:0,1", f"copy:encoder.1.ffn.output:1>10:{OTHER}"]
    second = [f"row:decoder.1.cross.2:1:{','.join(['1'] * n_keys)}", "residual:off:decoder.0.ffn"]
    other = browser.new_page()
    page.goto(server.link("attention", model=MODEL, text=CLASSIC, switch=first), wait_until="commit")
    other.goto(server.link("attention", model=MODEL, text=CLASSIC, switch=second), wait_until="commit")
    for visitor, own, foreign in ((page, first, second), (other, second, first)):
        for switch in own:
            expect(chip(visitor, switch)).to_be_visible()
        expect(visitor.get_by_text(measured(own), exact=False).first).to_be_visible()
        for switch in foreign:
            expect(chip(visitor, switch)).to_be_hidden()
    other.close()


def test_a_badge_runs_its_checks_when_it_is_opened(page: Page, server: Server):
    page.goto(server.link("attention", model=MODEL, text=CLASSIC))
    expect(page.locator(".st-key-head canvas")).to_be_visible()
    open_menu(page, "head-matrix", PROVE)
    expect(page.get_by_text(re.compile(r"\d+ checks, run just now: all hold\."))).to_be_visible()
