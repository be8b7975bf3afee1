"""The app on a server and in a Chromium of its own, for benchmarks that measure up to what is painted."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from app_server import Server, running_app  # noqa: E402


@contextmanager
def opened_app(clock: str) -> Iterator[tuple[Server, Page]]:
    """A server and a page in which the script `clock` runs before every document."""
    with (
        tempfile.TemporaryDirectory(prefix="latency-") as folder,
        running_app(Path(folder), Path(folder) / "server.log") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=which("chromium") or which("google-chrome"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(60_000)
        page.add_init_script(clock)
        yield server, page
        browser.close()
