"""A real server and a real browser. Whatever leaves this machine, and whatever a page throws, fails the test."""

import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from app_server import Server, running_app
from page_models import save_recurrent, save_untrained
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

PATIENCE_MS = 30_000
"""The time limit for one outcome on a page, on a busy machine."""

RECURRENT = "untrained-rnn"
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with three untrained models among its runs, one of them recurrent."""
    runs = tmp_path_factory.mktemp("runs")
    save_untrained(runs)
    save_recurrent(runs / RECURRENT)
    with running_app(runs, tmp_path_factory.mktemp("server") / "log.txt") as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests; without one they are skipped."""
    found = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if found is None:
        pytest.skip("no Chromium here: install Debian's package chromium to run the browser tests")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new visitor's tab, with nothing but this machine to reach."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    outside: list[str] = []
    thrown: list[str] = []

    def only_here(route: Route) -> None:
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route("**/*", only_here)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: thrown.append(str(error)))
    yield page
    exceptions = page.locator("[data-testid=stException]").all_inner_texts()
    context.close()
    assert not outside, f"the page asked for {outside}"
    assert not thrown, f"the page threw {thrown}"
    assert not exceptions, f"the page shows {exceptions}"
