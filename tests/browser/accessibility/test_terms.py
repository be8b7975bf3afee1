"""A technical term says what it means to the pointer, to the keyboard and to a finger; test_axe.py tries all terms."""

import re
from collections import Counter

import pytest
from app_server import Server
from controls import open_menu, wait_for_rest
from page_models import REVERSE
from playwright.sync_api import Locator, Page, expect

from pages.shared.exhibit import EXPLAIN
from pages.shared.glossary import term_of, terms

pytestmark = pytest.mark.browser


def term(page: Page, name: str) -> Locator:
    return page.locator(f'.term[data-term="{name}"]')


def test_a_term_is_explained_on_hover_on_focus_and_on_touch(page: Page, server: Server):
    page.goto(server.link("masks", model=REVERSE, text="a b c"))
    wait_for_rest(page, 1000)  # a page that is still drawn moves away from under the pointer
    expect(page.locator("html")).to_have_attribute("lang", "en")
    meaning = page.get_by_role("tooltip")
    for explain in (Locator.hover, Locator.focus, Locator.click):
        explain(term(page, "batch"))
        expect(meaning).to_contain_text("The examples that one step of training, or one pass, works on together.")
        expect(meaning).to_contain_text("section 5.1")
        expect(term(page, "batch")).to_have_attribute("aria-describedby", "term-meaning")
        page.keyboard.press("Escape")
        expect(meaning).to_be_hidden()
        page.get_by_role("heading", level=1).first.hover()


def test_terms_are_marked_once_and_texts_stay_as_they_are_written(page: Page, server: Server):
    page.goto(server.link("masks", model=REVERSE, text="a b c"))
    legend = page.get_by_text(re.compile("^A row is a"))
    expect(term(page, "query")).to_have_count(1)
    for kind, said in (
        ("Encoder self", "Encoder self-attention has no causal mask"),
        ("Cross", "Cross-attention has no"),
    ):
        page.get_by_role("radio", name=kind).click()
        expect(legend).to_contain_text(said)
        assert legend.inner_text().count("Coloured") == legend.inner_text().count("has no causal mask") == 1
    page.get_by_text("A row that may attend to nothing").click()
    expect(term(page, "softmax")).to_have_count(1)
    assert (
        max(Counter(page.locator(".term[tabindex='0']").evaluate_all("all => all.map(e => e.dataset.term)")).values())
        == 1
    )
    found = page.locator(".term").all_inner_texts()
    assert {getattr(term_of(word), "name", None) for word in found} <= {entry.name for entry in terms()}


def test_the_focus_on_a_control_explains_every_term_in_its_name(page: Page, server: Server):
    page.goto(server.link("masks", model=REVERSE, text="a b c"))
    fold = page.locator("[data-testid=stMain] summary").first
    expect(fold).to_be_visible()
    wait_for_rest(page, 1000)
    fold.locator("[data-testid=stMarkdownContainer] p").first.evaluate(TWO_TERMS)
    fold.focus()
    for found in terms()[:2]:
        expect(page.get_by_role("tooltip")).to_contain_text(found.meaning)


@pytest.mark.slow
def test_a_term_that_comes_under_a_resting_pointer_waits_until_it_moves(page: Page, server: Server):
    page.goto(server.link("masks", model=REVERSE, text="a b c"))
    wait_for_rest(page, 1000)
    heading = page.get_by_role("heading", level=1).first
    heading.hover(position={"x": 8, "y": 20})
    heading.evaluate(TWO_TERMS)
    page.evaluate(TWO_FRAMES)
    meaning = page.get_by_role("tooltip")
    expect(meaning).to_be_hidden()
    heading.hover(position={"x": 12, "y": 20})
    expect(meaning).to_contain_text(terms()[0].meaning)


TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100))))"
"""Waits until the browser has looked again at what lies under the pointer."""
TWO_TERMS = """(name) => {
  const terms = [0, 1].map((place) => {
    const term = Object.assign(document.createElement("span"), { className: "term", textContent: "term" });
    Object.assign(term.dataset, { term: `term ${place}`, place });
    return term;
  });
  name.replaceChildren(...terms);
}"""
"""Makes the name of a control two terms, as it may be where no text before it names them."""


@pytest.mark.slow
def test_terms_do_not_lengthen_the_way_to_the_matrix(page: Page, server: Server):
    page.goto(server.link("attention", model=REVERSE, text="a b c"))
    expect(term(page, "head")).to_have_attribute("tabindex", "-1")
    expect(page.locator(".term[tabindex='0']")).to_have_count(0)
    open_menu(page, "head-matrix", EXPLAIN)
    expect(page.locator("[data-testid=stPopoverBody] .term[tabindex='0']").first).to_be_visible()
    expect(page.locator("[data-testid=stPopoverBody]")).to_contain_text("attention weight · ")


@pytest.mark.slow
def test_the_glossarys_formulas_can_be_read(page: Page, server: Server):
    page.goto(server.link("glossary"))
    formulas = [entry for entry in terms() if entry.formula]
    expect(page.locator(".st-key-glossary .katex")).to_have_count(len(formulas))
    expect(page.locator(".katex-error, .st-key-glossary .term")).to_have_count(0)
