"""The Chromium of tests and benchmarks. Debian's headless shell opens a page with less than two thirds of the processor
time of the whole browser; nobody looks at either."""

import shutil

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",  # letters as wide in the headless shell as in the whole browser
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing leaves this machine
)
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Returns the path of a Chromium, or None where there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)
