"""Milliseconds from a change of d_model or length at 512 × 512 to the painted table: `python
tests/benchmarks/positions_latency.py`.

A real server and a real Chromium. Two clocks: from the key press, and from the moment the browser sends the change
(Streamlit's sliders wait a while for further keys before they send). Painted is two animation frames after the table's
new size stands above it.
"""

import argparse
import sys

import numpy as np
from opened_app import opened_app
from playwright.sync_api import Page

CLOCK = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (...data) {
  if (window.waiting && window.pressed && !window.sent) window.sent = performance.now();
  return send.apply(this, data);
};
addEventListener("keydown", () => { if (window.waiting) window.pressed = performance.now(); }, true);
window.painted = (text) => new Promise((done) => {
  window.waiting = true;
  window.pressed = window.sent = 0;
  const look = () => {
    if (window.pressed && document.querySelector("[data-testid=stMain]").textContent.includes(text))
      requestAnimationFrame(() => requestAnimationFrame(() => {
        const now = performance.now();
        window.waiting = false;
        done([now - window.pressed, now - window.sent]);
      }));
    else requestAnimationFrame(look);
  };
  look();
});
"""


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    with opened_app(CLOCK) as (server, page):
        for name, label in (("d_model", "d_model"), ("length", "Length")):
            page.goto(server.link("positions", model=options.model, d_model=512, length=512))
            page.get_by_text("512 × 512").first.wait_for()
            page.wait_for_timeout(1_500)
            _report(name, np.array([_change(page, name, label, number) for number in range(options.times)]))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="reverse-learned")
    parser.add_argument("--times", type=int, default=40)
    return parser.parse_args(arguments)


def _change(page: Page, name: str, label: str, number: int) -> list[float]:
    """One step away from 512, or back; every table is a new one but for the two sizes' own cache."""
    step = 2 if name == "d_model" else 1
    size = 512 - step * (number + 1)
    wanted = f"512 × {size}" if name == "d_model" else f"{size} × 512"
    slider = page.get_by_role("slider", name=label)
    slider.focus()
    page.evaluate("text => { window.found = window.painted(text); }", wanted)
    slider.press("ArrowLeft")
    return page.evaluate("window.found")


def _report(name: str, milliseconds: np.ndarray) -> None:
    for clock, values in zip(("key press to painted", "sent to painted"), milliseconds[2:].T, strict=True):
        p50, p95 = np.percentile(values, (50, 95))
        print(f"{name:8} {clock:21} p50 {p50:4.0f} ms   p95 {p95:4.0f} ms   of {len(values)}")


if __name__ == "__main__":
    main(sys.argv[1:])
