"""Measures what it costs to watch a run, in a browser of its own: `python benchmarks/watching.py`.

On the page of each training in turn: how much longer *reverse* takes beside its open page than without a page, and what
the server and the browser spend of each second meanwhile, how often another step is seen, and, on the Playground, when
the curve first moves and when the output is right. Meant for two quiet cores.
"""

import argparse
import json
import math
import re
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).parent))

from arguments import read_options
from opened_app import PATIENCE_S, Server, opened_app, waited
from playwright.sync_api import Locator, Page

COUNT = """() => {
  const text = (node) => [...(node.shadowRoot ?? node).childNodes]
    .map((child) => (child.nodeType === Node.TEXT_NODE ? child.textContent : text(child))).join(" ");
  const begin = performance.now();
  const curves = () => [...document.querySelectorAll(".st-key-playground-curves *")]
    .flatMap((element) => [...(element.shadowRoot?.querySelectorAll("path") ?? [])])
    .some((path) => path.getAttribute("d"));
  window.steps = new Set();
  window.moved = window.right = null;
  setInterval(() => {
    const shown = document.querySelector(".st-key-playground-chips, .st-key-readings");
    const said = shown ? text(shown).replace(/\\s+/g, " ") : "";
    const step = /(?:Output at )?step ([\\d,]+)/.exec(said)?.[1];
    if (step) window.steps.add(step);
    if (curves()) window.moved ??= performance.now() - begin;
    if (/ f \\S+ e \\S+ d \\S+ c \\S+ b \\S+ a \\S+ <\\/s>/.test(said)) window.right ??= performance.now() - begin;
  }, 50);
}"""
"""Notes the steps that are on the screen, and when the Playground's curve is first drawn and its output first right."""
LOOK_EVERY_S = 0.25
"""Seconds: a look costs the trainer next to nothing then."""
PARAMETERS: dict[str, dict[str, str]] = {"playground": {}, "train": {"corpus": "reverse"}}
START, AGAIN = {"playground": "Play", "train": "Train"}, {"playground": "Play again", "train": "Train"}
"""The buttons that start a run, and the same one again."""


class Watched(NamedTuple):
    """One training with its page open, and the same one without."""

    updates: float
    """The steps a second that were seen on the screen."""
    ratio: float
    """The time of the watched training over that of the other."""
    server: float
    """The seconds of a core that the server spends a second, and the browser likewise."""
    browser: float
    watched_s: float
    alone_s: float
    moved_s: float
    """The seconds from the press to the first curve, and to the right output; NaN on Train, which draws others."""
    right_s: float

    def __str__(self) -> str:
        pressed = f"; curve after {self.moved_s:.2f} s, right output after {self.right_s:.1f} s"
        return (
            f"watched {self.watched_s:.2f} s, alone {self.alone_s:.2f} s, ratio {self.ratio:.2f}; "
            f"{self.updates:.1f} updates a second; of a second the server takes {self.server:.2f} s "
            f"and the browser {self.browser:.2f} s{'' if math.isnan(self.moved_s) else pressed}"
        )


def main(arguments: list[str]) -> None:
    """Prints a line for each round, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--pages", nargs="+", choices=PARAMETERS, default=[*PARAMETERS])
    parser.add_argument("--steps", type=int, help="the steps of each run on Train, where not the recipe's")
    parser.add_argument("--warm-up-s", type=float, default=10.0, help="the server's time to prepare its worker")
    options = read_options(parser, arguments, smoke={"times": 1, "pages": ["train"], "steps": 20, "warm_up_s": 0.0})
    if options.steps is not None:
        PARAMETERS["train"]["steps"] = str(options.steps)
    with opened_app("") as (server, page):
        for name in options.pages:
            page.goto(server.link(name))  # loads what the server loads once
            start(page, name).wait_for()
            time.sleep(options.warm_up_s)
            rounds = []
            for _ in range(options.times):
                rounds.append(watched(server, page, name))
                print(f"{name}: {rounds[-1]}", flush=True)
            median = Watched(*map(statistics.median, zip(*rounds, strict=True)))
            print(f"{name}, median of {options.times}: {median}", flush=True)


def watched(server: Server, page: Page, name: str) -> Watched:
    """Trains with the page open, then once more without a page."""
    page.goto(server.link(name, **PARAMETERS[name]))
    start(page, name).wait_for()
    page.evaluate(COUNT)
    before, begin = spent(server), time.perf_counter()
    run = started(server, page, start(page, name))
    own = trained_s(server, run)
    took, after = time.perf_counter() - begin, spent(server)
    updates = page.evaluate("() => window.steps.size") / own
    moved_s, right_s = (math.nan if ms is None else ms / 1000 for ms in page.evaluate("() => [moved, right]"))
    other = started(server, page, page.get_by_role("button", name=AGAIN[name], exact=True))
    page.goto("about:blank")
    alone = trained_s(server, other)
    server_s, browser_s = ((late - early) / took for early, late in zip(before, after, strict=True))
    return Watched(updates, own / alone, server_s, browser_s, own, alone, moved_s, right_s)


def start(page: Page, name: str) -> Locator:
    """Returns the button that starts a run."""
    return page.get_by_role("button", name=START[name], exact=True)


def started(server: Server, page: Page, button: Locator) -> str:
    """Presses a button and returns the run that it starts, once the page's address names it.

    A page that still loads may name an older run meanwhile: what counts is one that was not there before the press.
    """
    before = {"", *(folder.name for folder in server.runs.iterdir())}
    button.click()
    return str(waited(page, lambda: run_of(page) not in before and run_of(page)))


def spent(server: Server) -> tuple[float, float]:
    """Returns the processor seconds that the server and the browser have spent so far."""
    browser = [process for process in psutil.Process().children(recursive=True) if "chrom" in process.name()]
    return _spent([psutil.Process(server.pid)]), _spent(browser)


def _spent(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def run_of(page: Page) -> str:
    """Returns the run that the page's address names; empty for none."""
    found = re.search(r"[?&]run=([^&]+)", page.url)
    return found[1] if found else ""


def trained_s(server: Server, run: str) -> float:
    """Waits for the end of a run, without a word to the browser, and returns the seconds that it trained."""
    path, end = server.runs / run / "status.json", time.perf_counter() + PATIENCE_S
    while (found := json.loads(path.read_text()))["state"] != "finished":
        if time.perf_counter() > end:
            raise SystemExit(f"{run} did not end")
        time.sleep(LOOK_EVERY_S)
    return found["elapsed_s"]


if __name__ == "__main__":
    main(sys.argv[1:])
