"""A real server and a real browser. Whatever leaves this machine, and whatever a page throws, fails the test."""

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from app_server import Server, running_app
from chromium import FLAGS, find_chromium
from controls import FAULTS
from page_models import save_recurrent, save_untrained
from playwright.sync_api import Browser, Error, Page, Request, expect, sync_playwright

PATIENCE_MS = 90_000
"""The time limit for one outcome on a page. Beside trainings, a browser without a GPU may draw for half a minute."""

EVIDENCE = Path(__file__).parents[2] / "build" / "failed-tests"
"""Where the pictures of pages lie on which a test failed."""
POLICY = "Content Security Policy"
"""The words in a browser's message about anything that the server's headers forbid."""
RECURRENT = "untrained-rnn"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Generator[None, pytest.TestReport]:
    """Adds to the message of a failure what each open page shows and said, and where its picture lies."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("browser") or getattr(item, "funcargs", {}).get("page")
    if call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception) or browser is None:
        return report
    contexts = browser.contexts if isinstance(browser, Browser) else [browser.context]
    for number, page in enumerate(page for context in contexts for page in context.pages):
        picture = EVIDENCE / f"{re.sub(r'[^A-Za-z0-9]+', '-', item.nodeid)}{number}.png"
        report.sections.append((f"Page {number} of the browser", _evidence(page, picture)))
    return report


def _evidence(page: Page, picture: Path) -> str:
    console = ""
    try:
        console = "\n".join(f"  {message.type}: {message.text}" for message in page.console_messages())
        page.screenshot(path=picture, timeout=5000)
        shown = page.locator("body").inner_text(timeout=5000)
    except Error as error:
        shown = f"no picture: {error}"
    return f"{page.url}\n{picture}\nconsole:\n{console}\ntext:\n{shown}"


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
    found = find_chromium()
    if found is None:
        pytest.skip("no Chromium here: install Debian's package chromium-headless-shell to run the browser tests")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new visitor's tab, with nothing but this machine to reach."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    outside: list[str] = []
    thrown: list[str] = []

    def note_outside(request: Request) -> None:
        if urlsplit(request.url).hostname not in ("127.0.0.1", None):
            outside.append(request.url)

    context.on("request", note_outside)  # FLAGS let none through; to stop each here would switch the cache off
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.on("console", lambda message: thrown.append(message.text) if POLICY in message.text else None)
    yield page
    exceptions = page.locator(FAULTS).all_inner_texts()
    context.close()
    assert not outside, f"the page asked for {outside}"
    assert not thrown, f"the page threw {thrown}"
    assert not exceptions, f"the page shows {exceptions}"
