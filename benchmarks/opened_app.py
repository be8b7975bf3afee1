"""The app on a server and in a Chromium of its own, for benchmarks that measure up to what is painted."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
PATIENCE_S = 180.0
LOOK_AGAIN_MS = 20
SERVER = "ATTENTION_LAB_BENCHED"
"""The environment variable with a server to take in place of an own one, as smoke runs in tests do: as JSON its
address, its folder of runs and its process."""
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from app_server import Server, running_app  # noqa: E402
from chromium import find_chromium  # noqa: E402


@contextmanager
def opened_app(clock: str) -> Iterator[tuple[Server, Page]]:
    """A server and a page in which the script `clock` runs before every document."""
    with ExitStack() as stack:
        if found := os.environ.get(SERVER):
            url, runs, pid = json.loads(found)
            server = Server(url, Path(runs), pid)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="latency-")))
            server = stack.enter_context(running_app(folder, folder / "server.log"))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(60_000)
        page.add_init_script(clock)
        yield server, page
        browser.close()


def waited(page: Page, look: Callable[[], object]) -> object:
    """Returns what a look at the page finds, once it finds something."""
    end = time.perf_counter() + PATIENCE_S
    while not (found := look()):
        if time.perf_counter() > end:
            raise SystemExit("it did not come")
        page.wait_for_timeout(LOOK_AGAIN_MS)
    return found
