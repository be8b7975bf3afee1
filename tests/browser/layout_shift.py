"""Measures what moves on a page unasked, as the browser counts it (cumulative layout shift)."""

from playwright.sync_api import Page

MAX_SHIFT = 0.05
"""The limit of the sum of shares of the window that moved unasked."""
_WATCH = """() => {
  window.shift = 0;
  window.moved = [];
  const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(" ");
  const name = (node) => {
    const element = node?.nodeType === Node.TEXT_NODE ? node.parentElement : node;
    const key = element?.closest("[class*=st-key-]")?.className.match(/st-key-[\\w-]+/)?.[0] ?? "";
    return `${key} ${element?.tagName} ${element?.dataset?.testid ?? ""} ${(element?.innerText ?? "").slice(0, 40)}`;
  };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries().filter((entry) => !entry.hadRecentInput)) {
      window.shift += entry.value;
      const parts = entry.sources.map((s) => `${name(s.node)}: ${place(s.previousRect)} -> ${place(s.currentRect)}`);
      window.moved.push(`${entry.value.toFixed(3)} at ${Math.round(entry.startTime)} ms: ${parts.join("; ")}`);
    }
  }).observe({ type: "layout-shift" });
}"""


def watch_layout(page: Page) -> None:
    """Begins to add up what moves."""
    page.evaluate(_WATCH)


def check_layout(page: Page) -> None:
    """Fails if more than the limit has moved since `watch_layout`, with what moved and from where to where."""
    shift, moved = page.evaluate("[window.shift, window.moved]")
    assert shift <= MAX_SHIFT, "\n".join([f"moved {shift:.3f} of the window", *moved])
