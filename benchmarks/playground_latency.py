"""Measures the waits on the Playground, in seconds, in a browser of its own: `python benchmarks/playground_latency.py`.

From opening the page, with the server and its worker warm, to the first curve and to one that moves; from Play to the
first right reversal of the string on the page. Then how often the output changes a second until the run ends, and how
much longer the training takes with the page open than the same one without a page. Meant for two quiet cores: the load
before each round stands beside it.
"""

import argparse
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from arguments import read_options
from opened_app import Server, opened_app
from playwright.sync_api import Page

PATIENCE_S = 180.0
LOOK_AGAIN_MS = 20
CURVE = ".st-key-playground-curves path.line"
MARKS = ("Play can be pressed", "first curve", "curve moves", "right reversal, from Play")
COUNT = """() => {
  const text = (node) => [...(node.shadowRoot ?? node).childNodes]
    .map((child) => (child.nodeType === Node.TEXT_NODE ? child.textContent : text(child))).join(" ");
  window.steps = new Set();
  setInterval(() => {
    const chips = document.querySelector(".st-key-playground-chips");
    const step = chips && /Output at step ([\\d,]+)/.exec(text(chips))?.[1];
    if (step) window.steps.add(step);
  }, 20);
}"""
"""Notes the steps of the outputs that are on the screen."""


def main(arguments: list[str]) -> None:
    """Prints a line for each round, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--warm-up-s", type=float, default=10.0, help="the server's time to prepare its worker")
    options = read_options(parser, arguments, smoke={"times": 1, "warm_up_s": 0.0})
    rounds = []
    with opened_app("") as (server, page):
        page.goto(server.link("playground"))  # loads what the server loads once
        play(page).wait_for()
        time.sleep(options.warm_up_s)
        for _ in range(options.times):
            load = os.getloadavg()[0]
            rounds.append(measured(server, page))
            print(f"load {load:.1f}: {told(rounds[-1])}", flush=True)
        print(f"median of {options.times}: {told([statistics.median(column) for column in zip(*rounds, strict=True)])}")
        watched = []
        for _ in range(
            options.times if server.runs.is_absolute() else 0
        ):  # another one's server keeps its runs elsewhere
            watched.append(watching(server, page))
            print("outputs a second {:.1f}; training watched {:.2f} s, alone {:.2f} s".format(*watched[-1]), flush=True)
        if watched:
            rate, own, alone = (statistics.median(column) for column in zip(*watched, strict=True))
            print(f"median: {rate:.1f} outputs a second; watched over alone {own / alone:.2f}")


def measured(server: Server, page: Page) -> list[float]:
    """Opens the page, presses Play, and returns the seconds to each of the marks."""
    page.goto("about:blank")
    begin = time.perf_counter()
    page.goto(server.link("playground"), wait_until="commit")
    play(page).click()
    pressed = time.perf_counter()
    first = waited(page, lambda: drawn(page))
    curve = time.perf_counter()
    waited(page, lambda: drawn(page) not in ("", first))
    moves = time.perf_counter()
    wanted = page.get_by_role("textbox", name="Your input").input_value().split()[::-1]
    waited(page, lambda: output(page) == wanted)
    right = time.perf_counter()
    page.get_by_role("button", name="Pause").or_(page.get_by_role("button", name="Play again")).click()
    return [pressed - begin, curve - begin, moves - begin, right - pressed]


def watching(server: Server, page: Page) -> tuple[float, float, float]:
    """Returns the outputs a second on the screen, and the seconds of training with the page open and without a page."""
    page.goto(server.link("playground"))
    play(page).wait_for()
    page.evaluate(COUNT)
    play(page).click()
    page.get_by_role("button", name="Play again").wait_for(timeout=1000 * PATIENCE_S)
    outputs, own = page.evaluate("() => window.steps.size"), trained_s(server, page)
    page.get_by_role("button", name="Play again").click()
    page.get_by_role("button", name="Pause").wait_for()
    waited(page, lambda: run_of(page))
    address = page.url
    page.goto("about:blank")
    alone = trained_s(server, page, address)
    return outputs / own, own, alone


def run_of(page: Page, address: str = "") -> str:
    """Returns the run that a page's address names; empty for none."""
    found = re.search(r"[?&]run=([^&]+)", address or page.url)
    return found[1] if found else ""


def trained_s(server: Server, page: Page, address: str = "") -> float:
    """Waits for the end of the page's run and returns the seconds that it trained."""
    path = server.runs / run_of(page, address) / "status.json"
    waited(page, lambda: json.loads(path.read_text())["state"] == "finished")
    return json.loads(path.read_text())["elapsed_s"]


def play(page: Page):
    """Returns the large button of an untouched page."""
    return page.get_by_role("button", name="Play", exact=True)


def drawn(page: Page) -> str:
    """Returns the path of the first curve; empty before there is one."""
    found = page.locator(CURVE).evaluate_all("paths => paths.map(path => path.getAttribute('d') ?? '')")
    return next(filter(None, found), "")


def output(page: Page) -> list[str]:
    """Returns the tokens that the model writes now, without its end mark."""
    return [text for text in page.locator(".st-key-playground-chips bdi.text").all_inner_texts() if text != "</s>"]


def waited(page: Page, look: Callable[[], object]) -> object:
    """Returns what a look at the page finds, once it finds something."""
    end = time.perf_counter() + PATIENCE_S
    while not (found := look()):
        if time.perf_counter() > end:
            raise SystemExit("it did not come")
        page.wait_for_timeout(LOOK_AGAIN_MS)
    return found


def told(seconds: list[float]) -> str:
    """Returns the seconds with what they lead to."""
    return "; ".join(f"{mark} {value:.2f} s" for mark, value in zip(MARKS, seconds, strict=True))


if __name__ == "__main__":
    main(sys.argv[1:])
