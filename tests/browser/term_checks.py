"""The technical terms on a page: which are named there, and which of them do not say what they mean."""

from playwright.sync_api import Page

from pages.shared.glossary import terms_in

_NAMED = """() => {
  const inLabel = "label, summary, [data-testid=stWidgetLabel], [role=radio], [role=tab]";
  return [...document.querySelectorAll("[data-testid=stMain] [data-testid=stMarkdownContainer]")]
    .filter((text) => text.checkVisibility())
    .filter((text) => !text.closest("a, .st-key-glossary, :has(> [data-testid=stTooltipIcon])"))
    .filter((text) => !text.closest("button, [role=radio], [role=tab]") || text.closest(inLabel))
    .map((text) => {
      const copy = text.cloneNode(true);
      copy.querySelectorAll("a, code, pre, em, .katex").forEach((part) => part.remove());
      return copy.textContent;
    });
}"""
"""Returns the texts, headings and names of controls that a page shows, but for links, buttons, code and examples."""

_UNEXPLAINED = """() => {
  const tooltip = () => document.querySelector("#term-meaning:popover-open")?.textContent ?? "";
  const ways = {
    hover: (term) => term.dispatchEvent(new PointerEvent("pointerover", { bubbles: true })),
    touch: (term) => term.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, pointerType: "touch" })),
    focus: (term) => (term.hasAttribute("tabindex") ? term : control(term)).focus(),
  };
  const control = (term) => {
    const own = term.closest("label")?.querySelector("input");
    const field = term.closest("[data-testid=stElementContainer]");
    return term.closest("summary, [role=radio], [role=tab]") ?? own ?? field.querySelector("input, textarea, button");
  };
  const failing = [];
  for (const term of [...document.querySelectorAll(".term")].filter((term) => term.checkVisibility())) {
    for (const [name, explain] of Object.entries(ways)) {
      document.activeElement.blur();
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
      explain(term);
      if (!tooltip().includes(term.dataset.meaning)) failing.push(`${name}: ${term.dataset.term}`);
    }
  }
  return failing;
}"""
"""Returns the terms that do not say what they mean, with the way that was tried."""


def unexplained_terms(page: Page) -> list[str]:
    """Returns the terms that the page names and does not mark, and those that do not say what they mean to the pointer,
    to the keyboard or to a finger."""
    named = {found.name for text in page.evaluate(_NAMED) for found in terms_in(text)}
    marked = page.locator(".term").evaluate_all("all => all.map(term => term.dataset.term)")
    return sorted(named - set(marked)) + page.evaluate(_UNEXPLAINED)
