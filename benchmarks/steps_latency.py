"""Measures the milliseconds from a click on Decoder steps to the painted answer.

    python benchmarks/steps_latency.py

A real server and a real Chromium, the classic sentence on pronouns-en-fr. Walked to the last step and back, plainly and
inside the step (every step computed anew the first time). Painted is two animation frames after the new step is named.
"""

import argparse
import sys
from itertools import pairwise

import numpy as np
from arguments import read_options
from opened_app import opened_app
from playwright.sync_api import Page

CLOCK = """
window.painted = (text) => new Promise((done) => {
  let clicked = 0;
  addEventListener("pointerdown", () => { clicked = performance.now(); }, {capture: true, once: true});
  const look = () => {
    if (clicked && document.querySelector("[data-testid=stMain]").textContent.includes(text))
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - clicked)));
    else requestAnimationFrame(look);
  };
  look();
});
"""
NAMED = {"steps": "Write another token at step {}", "inside": "If the decoder ended here · step {}"}


def main(arguments: list[str]) -> None:
    """Prints a line for each look."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="pronouns-en-fr")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = read_options(parser, arguments, smoke={"steps": 2, "rounds": 1})
    with opened_app(CLOCK) as (server, page):
        for look, named in NAMED.items():
            page.goto(server.link("decoder-steps", model=options.model, look=look))
            page.get_by_text(named.format(0)).first.wait_for()
            page.wait_for_timeout(1_500)
            way = [*range(1, options.steps), *reversed(range(options.steps - 1))] * options.rounds
            took = np.array([_walk(page, named.format(step), step, before) for before, step in pairwise([0, *way])])
            p50, p95 = np.percentile(took, (50, 95))
            print(f"{look:7} click to painted   p50 {p50:4.0f} ms   p95 {p95:4.0f} ms   of {len(took)}")


def _walk(page: Page, wanted: str, step: int, before: int) -> float:
    button = page.locator(f".st-key-step-{'on' if step > before else 'back'} button")
    page.evaluate("text => { window.found = window.painted(text); }", wanted)
    button.click()
    return page.evaluate("window.found")


if __name__ == "__main__":
    main(sys.argv[1:])
