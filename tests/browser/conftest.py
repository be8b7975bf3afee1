"""A real server and a real browser. Whatever leaves this machine, and whatever a page throws, fails the test."""

import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest
from app_server import Server, running_app
from chromium import FLAGS, find_chromium
from controls import FAULTS
from page_models import save_recurrent, save_untrained
from playwright.sync_api import Browser, Error, Page, ViewportSize, expect, sync_playwright

PATIENCE_MS = 90_000
"""The time limit for one outcome on a page. Beside trainings, a browser without a GPU may draw for half a minute."""

EVIDENCE = Path(__file__).parents[2] / "build" / "failed-tests"
"""Where the pictures of pages lie on which a test failed."""
POLICY = "Content Security Policy"
"""The words in a browser's message about anything that the server's headers forbid."""
RECURRENT = "untrained-rnn"
WINDOW: ViewportSize = {"width": 1280, "height": 900}
_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Generator[None, pytest.TestReport]:
    """Adds to the message of a failure what each open page shows and said, and where its picture lies."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("browser") or getattr(item, "funcargs", {}).get("page")
    if call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception) or browser is None:
        return report
    item.stash[_FAILED] = True
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


@pytest.fixture(scope="session")
def tabs() -> list[Page]:
    """The tab that the test before has left, as good as new; empty where there is none.

    A page opens in it with a third of the processor time that it takes in a new tab, where the browser compiles all of
    the app's scripts again.
    """
    return []


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Browser, tabs: list[Page]) -> Iterator[Page]:
    """A new visitor's tab, with nothing but this machine to reach."""
    needs_new = request.node.get_closest_marker("new_tab") is not None
    page = tabs.pop() if tabs and not needs_new else _new_tab(browser)
    asked: list[SplitResult] = []
    thrown: list[str] = []
    listeners = {
        "request": lambda request: asked.append(urlsplit(request.url)),  # to stop each would switch the cache off
        "pageerror": lambda error: thrown.append(str(error)),
        "console": lambda message: thrown.append(message.text) if POLICY in message.text else None,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    yield page
    exceptions = page.locator(FAULTS).all_inner_texts()
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    if needs_new or request.node.stash.get(_FAILED, False):
        page.context.close()
    else:
        _clear(page, {f"{url.scheme}://{url.netloc}" for url in asked if url.netloc})
        tabs.append(page)
    outside = [url.geturl() for url in asked if url.hostname not in ("127.0.0.1", None)]  # FLAGS let none through
    assert not outside, f"the page asked for {outside}"
    assert not thrown, f"the page threw {thrown}"
    assert not exceptions, f"the page shows {exceptions}"


def _new_tab(browser: Browser) -> Page:
    page = browser.new_context(viewport=WINDOW).new_page()
    page.set_default_timeout(PATIENCE_MS)
    return page


def _clear(page: Page, sites: Iterable[str]) -> None:
    """Makes a tab that a test has left as good as a new visitor's. Routes of web sockets, throttling and the length of
    the history cannot be put back: a test of these has the mark `new_tab`."""
    page.goto("about:blank")
    page.unroute_all(behavior="ignoreErrors")
    page.set_viewport_size(WINDOW)
    page.emulate_media(color_scheme="light", reduced_motion="null")
    page.mouse.move(0, 0)
    page.context.clear_cookies()
    page.context.clear_permissions()
    storage = page.context.new_cdp_session(page)
    for site in sites:
        storage.send("Storage.clearDataForOrigin", {"origin": site, "storageTypes": "all"})
    storage.detach()
