"""Measures the waits on the Playground, in seconds, in a browser of its own: `python benchmarks/playground_latency.py`.

From opening the page, with the server and its worker warm, to the first curve and to one that moves; from Play to the
first right reversal of the string on the page. Meant for two quiet cores: the load before each round stands beside
it.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from arguments import read_options
from opened_app import Server, opened_app, waited
from playwright.sync_api import Page

CURVE = ".st-key-playground-curves path.line"
MARKS = ("Play can be pressed", "first curve", "curve moves", "right reversal, from Play")


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


def told(seconds: list[float]) -> str:
    """Returns the seconds with what they lead to."""
    return "; ".join(f"{mark} {value:.2f} s" for mark, value in zip(MARKS, seconds, strict=True))


if __name__ == "__main__":
    main(sys.argv[1:])
