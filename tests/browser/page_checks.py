"""The checks that any page has to pass: axe-core finds nothing serious there, and each technical term is explained."""

from axe_playwright_python.base import AXE_SCRIPT
from controls import wait_for_rest
from playwright.sync_api import Page, expect

from pages.shared.glossary import terms, terms_in

_STREAMLITS_OWN = {
    "list": "[data-testid=stSidebarNavItems]",  # Streamlit puts a div for each section between this list
    "listitem": "[data-testid=stSidebarNavItems] li",  # and its items
}
"""The elements of Streamlit's own frame that break a rule, by the rule: no app can change them."""

_MARKED = "() => document.fonts.ready.then(() => new Promise((done) => setTimeout(done, 400)))"
"""Waits until the letters of formulas are there, and the page's script has marked what then scrolls."""

_SERIOUS = """async ([excused, isDark, within]) => {
  const runOnly = isDark ? { type: "rule", values: ["color-contrast"] } : undefined;
  const { violations } = await axe.run(within ?? document, { resultTypes: ["violations"], elementRef: true, runOnly });
  const why = ({ any, all, none }) => [...any, ...all, ...none].map(({ message }) => message).join("; ");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes
      .filter(({ element }) => !(excused[id] && element.matches(excused[id])))
      .map((node) => `${id}: ${node.html.slice(0, 200)} ${why(node)}`));
}"""
"""Returns a line for each element with a violation of serious or critical impact; of what is dark colours alone, as all
other rules look at what is the same in the light."""

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

_UNEXPLAINED = """(sources) => {
  const explained = (term) => {
    const tooltip = document.querySelector("#term-meaning:popover-open");
    const { meaning, section, formula } = sources[term.dataset.term];
    const says = (text) => tooltip.textContent.includes(text);
    return tooltip && says(meaning) && says(section) && (!formula || tooltip.querySelector("math"));
  };
  let moves = 0; // a resting pointer explains nothing
  const point = (term, type, pointerType) => {
    const place = { clientX: term.getBoundingClientRect().x, clientY: ++moves };
    term.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerType, ...place }));
  };
  const ways = {
    hover: (term) => point(term, "pointerover", "mouse"),
    touch: (term) => point(term, "pointerdown", "touch"),
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
      if (!explained(term)) failing.push(`${name}: ${term.dataset.term}`);
    }
  }
  return failing;
}"""
"""Returns the terms that do not say what they mean, with formula and section, and the way that was tried."""


def unexplained_terms(page: Page) -> list[str]:
    """Returns the terms that the page names and does not mark, and those that do not say what they mean to the pointer,
    to the keyboard or to a finger."""
    named = {found.name for text in page.evaluate(_NAMED) for found in terms_in(text)}
    marked = page.locator(".term").evaluate_all("all => all.map(term => term.dataset.term)")
    sources = {
        term.name: {"meaning": term.meaning, "section": term.section, "formula": bool(term.formula)} for term in terms()
    }
    return sorted(named - set(marked)) + page.evaluate(_UNEXPLAINED, sources)


def load_axe(page: Page) -> None:
    """Loads axe-core into the page as it stands."""
    page.evaluate(AXE_SCRIPT)


def serious(page: Page, within: str | None = None) -> list[str]:
    """Returns a line for each serious violation, in the whole page or within one element, once all is drawn."""
    wait_for_rest(page, 300)
    page.evaluate(_MARKED)
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    return page.evaluate(_SERIOUS, [_STREAMLITS_OWN, is_dark, within])


def darken(page: Page) -> None:
    """Changes to dark colours, and waits until the page has followed."""
    page.emulate_media(color_scheme="dark")
    expect(page.locator("[data-testid=stApp]")).to_have_css("color-scheme", "dark")
