"""The way through the app: all pages in sight beside the page, each page's next question, and Back."""

import re

import pytest
from app_server import Server
from controls import wait_for_rest
from page_models import REVERSE
from playwright.sync_api import Page, Route, expect

from pages.shared.registry import BY_FOLDER, PAGES

pytestmark = pytest.mark.browser

ENTRIES = {
    "a page that completes its address": ("pointerdown /a /a?q=1 /a?q=2", "/begin /a?q=2"),
    "a change by pointer": ("/a /a?q=1 pointerdown /a?q=2", "/begin /a?q=1 /a?q=2"),
    "a change by key": ("/a /a?q=1 keydown /a?q=2", "/begin /a?q=1 /a?q=2"),
    "a change by dictation": ("/a /a?q=1 input /a?q=2", "/begin /a?q=1 /a?q=2"),
    "a change by an assistive technology": ("/a /a?q=1 click /a?q=2", "/begin /a?q=1 /a?q=2"),
    "a change that is completed": ("/a pointerdown click /a?q=1 /a?q=2", "/begin /a /a?q=2"),
    "two changes": ("/a pointerdown /a?q=1 pointerdown /a?q=2", "/begin /a /a?q=1 /a?q=2"),
    "a touch of the page before": ("pointerdown /a /a?q=1", "/begin /a?q=1"),
    "a touch before the page is at rest": ("/a running pointerdown /a?q=1 rest /a?q=2", "/begin /a?q=2"),
    "a touch while a change is computed": ("/a pointerdown running click /a?q=1 rest", "/begin /a /a?q=1"),
    "a query before its path": ("pointerdown /begin?q=1 /a?q=1", "/begin /a?q=1"),
    "no query before its path": ("/a?q=1 pointerdown /a /b", "/begin /a?q=1 /b"),
    "two queries before their path": ("pointerdown /begin?q=1 /begin?q=2 /a?q=2", "/begin /a?q=2"),
    "a query before its path, and no touch": ("/a /a?q=1 /a?q=2 /b?q=2", "/begin /a /b?q=2"),
    "a page left before it is at rest": ("/a running click /a?q=1 click /a?q=2 /b?q=2 rest", "/begin /a?q=1 /b?q=2"),
    "a change just before another page": ("pointerdown /begin?q=1 pointerdown /a?q=1", "/begin /begin?q=1 /a?q=1"),
    "a change that comes late": ("pointerdown /begin?q=1 /a?q=2", "/begin /begin?q=1 /a?q=2"),
    "a page that completes its address after Back": ("/a pointerdown /b back /a?q=1 /a?q=2", "/begin /a?q=2"),
    "a page that comes late after Back": ("/a pointerdown /b back /c /a", "/begin /a"),
    "a page opened after Back": ("/a pointerdown /b back pointerdown /c", "/begin /a /c"),
}
"""The history, from /begin on, that pushes, touches, Back and the state of Streamlit's script leave."""
_TRAIL = """async (steps) => {
  const back = () => new Promise((done) => {
    addEventListener("popstate", done, { once: true });
    history.back();
  });
  const app = document.querySelector("[data-testid=stApp]");
  const address = () => location.pathname + location.search;
  dispatchEvent(new Event("pointerdown"));
  history.pushState({}, "", "/begin");
  dispatchEvent(new Event("pointerdown"));
  const length = history.length;
  for (const step of steps) {
    if (step.startsWith("/")) history.pushState({}, "", step);
    else if (step === "back") await back();
    else if (step === "running") app.dataset.testScriptState = "running";
    else if (step === "rest") app.dataset.testScriptState = "notRunning";
    else dispatchEvent(new Event(step));
  }
  const added = history.length - length;
  const trail = [address()];
  while (location.pathname !== "/begin" || location.search) { await back(); trail.unshift(address()); }
  await back();
  return [added, trail];
}"""
"""Takes the steps from an entry of its own, which has been touched; then goes back past it."""


def test_the_map_of_all_pages_fits_into_a_small_window(page: Page, server: Server):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(server.link("attention", model=REVERSE, text="a b c"))
    links = page.get_by_test_id("stSidebarNavLink")
    expect(links).to_have_text([entry.title for entry in PAGES if not entry.only_for_several])
    for link in links.all():
        expect(link).to_be_in_viewport(ratio=1)


def test_the_next_question_opens_the_page_that_answers_it_with_the_same_sentence(page: Page, server: Server):
    page.goto(server.link("attention", model=REVERSE, text="a b c d"))
    for folder in ("attention", "steps"):
        page.get_by_role("link", name=BY_FOLDER[folder].then.asks).click()
        expect(page.get_by_role("textbox", name="Sentence")).to_have_value("a b c d")
    expect(page).to_have_url(re.compile(rf"/walkthrough\?.*model={REVERSE}"))


@pytest.mark.new_tab
def test_what_is_drawn_first_stands_where_it_stays(page: Page, server: Server):
    """The style comes with the page: what app.py sends of it is there only after the first buttons."""
    held: list[Route] = []
    page.route("**/Html.*.js", lambda route: held.append(route))
    page.goto(server.link("train"))
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_enabled()
    heading = page.locator("[data-testid=stMain] h1").first
    first = heading.bounding_box()
    assert held, "this is the name of the code that takes over a style"
    page.unroute_all()  # lets it come
    wait_for_rest(page)
    styles = (
        "[...document.body.querySelectorAll('style')].filter((e) => e.textContent.includes('stMainBlockContainer'))"
    )
    page.wait_for_function(f"{styles}.length === 2")
    assert heading.bounding_box() == first


@pytest.mark.new_tab  # a history has at most 50 entries
@pytest.mark.flaky(reruns=0)  # nothing here waits for a server
def test_each_page_and_each_change_is_one_entry_of_the_history(page: Page, server: Server):
    page.goto(server.link("glossary"))  # which runs once
    page.wait_for_function("() => history.pushState.keepsOneEntry")
    wait_for_rest(page)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.evaluate("() => { WebSocket.prototype.send = () => {}; }")  # the server opens none of these pages
    for name, (steps, wanted) in ENTRIES.items():
        added, trail = page.evaluate(_TRAIL, steps.split())
        assert trail == wanted.split(), name
        assert added == len(trail) - 1 or "back" in steps, name


def test_back_leads_through_the_pages_that_the_sidebar_opened(page: Page, server: Server):
    page.goto(server.url)
    expect(page.locator(".term").first).to_be_attached()
    wait_for_rest(page)
    heading = page.locator("[data-testid=stMain] h1").first
    shown = [heading.inner_text()]
    for title in ("Attention", "Masks", "Glossary", "Positions"):
        page.get_by_test_id("stSidebarNavLink").filter(has_text=re.compile(f"^{title}$")).click()
        expect(heading).not_to_have_text(shown[-1])
        shown.append(heading.inner_text())
    for before in reversed(shown[:-1]):
        page.go_back()
        expect(heading).to_have_text(before)
