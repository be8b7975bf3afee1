"""Browser test of the Paper lab: a claim is read, a chart turned, an experiment started, left alone and stopped."""

import re

import pytest
from app_server import Server
from controls import menus, open_menu
from playwright.sync_api import Page, expect

from pages.shared.exhibit import PROVE

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_read_a_verdict_and_run_the_experiment_beside_it(page: Page, server: Server):
    page.goto(server.link("paper-lab", experiment="table-1"))
    verdict = page.locator(".st-key-lab-verdict")
    expect(verdict).to_contain_text(re.compile("Verdict: .*(holds here|does not hold here|cannot be told)"))
    plots = page.locator(".js-plotly-plot")
    expect(plots).to_have_count(2)

    page.get_by_role("radio", name="64", exact=True).click()
    expect(page).to_have_url(re.compile(r"at=d%3D64"))
    open_menu(page, menus(page).first, PROVE)
    expect(page.get_by_text(re.compile("checks?, run just now"))).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.get_by_text(re.compile(r"About .* on our test machine"))).to_be_visible()
    page.get_by_role("button", name="Run it here").click()
    progress = page.get_by_text(re.compile(r"Table 1, measured, small · \d+%"))
    expect(progress).to_be_visible()
    page.get_by_role("radio", name="Time against d").click()  # the page answers meanwhile
    expect(page).to_have_url(re.compile(r"chart=1"))
    expect(page.get_by_text(re.compile(r"small · [1-9]\d*%"))).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d+ of 270 measured so far"))).to_be_visible()
    expect(verdict).to_be_visible()


@pytest.mark.slow
def test_a_budget_is_selected_after_every_switch_of_experiments(page: Page, server: Server):
    page.goto(server.link("paper-lab", experiment="table-1"))
    for title, says in (("Why attention", "400 steps"), ("Table 1, measured", ""), ("Why attention", "400 steps")):
        page.get_by_role("radio", name=title, exact=True).click()
        budgets = page.get_by_role("radiogroup", name="Budget")
        expect(budgets.get_by_text(re.compile(f"Small: .*{says}"))).to_be_visible()
        expect(budgets.get_by_role("radio", checked=True)).to_have_count(1)
