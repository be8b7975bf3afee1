"""Browser test of the Paper lab: a claim is read, a chart turned, an experiment started, left alone and stopped."""

import re
import time
from contextlib import suppress

import psutil
import pytest
from app_server import Server
from controls import menus, open_menu
from playwright.sync_api import Page, expect

from pages.shared.exhibit import PROVE

pytestmark = pytest.mark.browser

PATIENCE_S = 90.0
BEGIN = re.compile("Run it here|Continue")
"""The button of an experiment that is not measured to its end."""


@pytest.mark.slow
def test_read_a_verdict_and_run_the_experiment_beside_it(page: Page, server: Server):
    page.goto(server.link("paper-lab", experiment="table-1"))
    verdict = page.locator(".st-key-lab-verdict")
    expect(verdict).to_contain_text(re.compile("Verdict: .*(holds here|does not hold here|cannot be told)"))
    plots = page.locator(".js-plotly-plot")
    expect(plots).to_have_count(3)

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


def wait_for_experiments(server: Server, count: int) -> None:
    """Waits until the server has this many processes that measure; a visitor without a connection counts for 10 s."""
    end = time.monotonic() + PATIENCE_S
    while len(found := experiments(server)) != count:
        assert time.monotonic() < end, found
        time.sleep(0.1)


def experiments(server: Server) -> list[str]:
    """The commands of the server's processes that measure."""
    found = []
    for process in psutil.Process(server.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found.append(" ".join(process.cmdline()))
    return [command for command in found if "experiment run" in command]


@pytest.mark.slow
def test_a_closed_tab_ends_its_experiment(page: Page, server: Server):
    address = server.link("paper-lab", experiment="why-attention")
    tab = page.context.new_page()
    tab.set_default_timeout(1000 * PATIENCE_S)
    tab.goto(address)
    tab.get_by_role("button", name=BEGIN).click()
    wait_for_experiments(server, 1)
    tab.close()
    wait_for_experiments(server, 0)
    page.goto(address)
    expect(page.get_by_role("button", name=BEGIN), "it had not come to its end").to_be_visible()


@pytest.mark.slow
def test_a_budget_is_selected_after_every_switch_of_experiments(page: Page, server: Server):
    page.goto(server.link("paper-lab", experiment="table-1"))
    for title, says in (("Why attention", "two LSTMs"), ("Table 1, measured", ""), ("Why attention", "two LSTMs")):
        page.get_by_role("radio", name=title, exact=True).click()
        budgets = page.get_by_role("radiogroup", name="Budget")
        expect(budgets.get_by_text(re.compile(f"Small: .*{says}"))).to_be_visible()
        expect(budgets.get_by_role("radio", checked=True)).to_have_count(1)
