"""Measures the milliseconds from a change of d_model or length at 512 × 512 to the painted figures.

    python benchmarks/positions_latency.py [--section table|distances|shifts]

A real server and a real Chromium. Two clocks: from the key press, and from the moment the browser sends the change
(Streamlit's sliders wait a while for further keys before they send). Painted is two animation frames after every canvas
of the section was drawn anew, the tables in their new size; that their pixels changed is checked after each.
"""

import argparse
import sys

import numpy as np
from arguments import read_options
from opened_app import opened_app
from playwright.sync_api import Page

CLOCK = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (...data) {
  if (window.waiting && window.pressed && !window.sent) window.sent = performance.now();
  return send.apply(this, data);
};
addEventListener("keydown", () => { if (window.waiting) window.pressed = performance.now(); }, true);
window.canvases = () => [...document.querySelectorAll("[class*=st-key-] *")]
  .map((element) => element.shadowRoot?.querySelector(".root[data-drawn]")).filter(Boolean);
window.pixels = () => window.canvases().map((root) => root.querySelector("canvas").toDataURL()).join();
window.painted = (text) => new Promise((done, fail) => {
  window.waiting = true;
  window.pressed = window.sent = 0;
  const roots = window.canvases(), drawn = new Set();
  const observers = roots.map((root) => {
    const observer = new MutationObserver(() => drawn.add(root));
    observer.observe(root, { attributes: true, attributeFilter: ["data-drawn"] });
    return observer;
  });
  const look = () => {
    if (window.pressed && performance.now() - window.pressed > 20000) return fail(new Error(`${text} was never drawn`));
    if (drawn.size < roots.length || !roots.some((root) => root.dataset.drawn.startsWith(text)))
      return requestAnimationFrame(look);
    for (const observer of observers) observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const now = performance.now();
      window.waiting = false;
      done([now - window.pressed, now - window.sent]);
    }));
  };
  look();
});
"""
_DRAWN = {  # what the tables say they drew, of a length and a d_model
    "table": "{length} × {d_model}",
    "distances": "{length} × {length}",
    "shifts": "{d_model} × {d_model}",
}


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    with opened_app(CLOCK) as (server, page):
        for name, label in (("d_model", "d_model"), ("length", "Length")):
            if options.section == "shifts" and name == "length":
                continue  # the maps are those of the rows that training reached, whatever the length
            page.goto(server.link("positions", model=options.model, d_model=512, length=512, section=options.section))
            page.locator(".root[data-drawn]").first.wait_for()
            page.wait_for_timeout(1_500)
            form = _DRAWN[options.section]
            _report(name, np.array([_change(page, form, name, label, number) for number in range(options.times)]))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="reverse-learned")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--section", choices=_DRAWN, default="table")
    return read_options(parser, arguments, smoke={"times": 3})


def _change(page: Page, form: str, name: str, label: str, number: int) -> list[float]:
    """One step further from 512; every table is a new one but for the two sizes' own cache."""
    sizes = {"d_model": 512, "length": 512}
    sizes[name] -= (2 if name == "d_model" else 1) * (number + 1)
    slider = page.get_by_role("slider", name=label)
    slider.focus()
    before = page.evaluate("window.pixels()")
    page.evaluate("text => { window.found = window.painted(text); }", form.format(**sizes))
    slider.press("ArrowLeft")
    found = page.evaluate("window.found")
    changes = form.format(**sizes) != form.format(d_model=512, length=512)
    assert not changes or page.evaluate("window.pixels()") != before, "the figures are those of the size before"
    return found


def _report(name: str, milliseconds: np.ndarray) -> None:
    for clock, values in zip(("key press to painted", "sent to painted"), milliseconds[2:].T, strict=True):
        p50, p95 = np.percentile(values, (50, 95))
        print(f"{name:8} {clock:21} p50 {p50:4.0f} ms   p95 {p95:4.0f} ms   of {len(values)}")


if __name__ == "__main__":
    main(sys.argv[1:])
