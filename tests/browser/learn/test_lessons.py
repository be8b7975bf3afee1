"""Browser test of a lesson: by keyboard alone, dragged, left, and taken up again from the browser's memory."""

import re

import pytest
from app_server import Server
from controls import wait_for_rest
from fakes.plain_bench import PlainBench
from layout_shift import check_layout, watch_layout
from page_checks import load_axe, serious
from playwright.sync_api import Locator, Page, expect

from pages.learn.lesson import Drawing, Lesson, Options, Step
from pages.learn.lessons import LESSONS

pytestmark = pytest.mark.browser

BENCH = PlainBench()
MOST_TABS = 60
_SPILT = """() => [...document.querySelectorAll('[data-testid=stMain] p, [data-testid=stMain] button')]
    .filter(part => part.getBoundingClientRect().right > innerWidth + 1)
    .filter(part => !part.closest('[class*=scroll], [data-testid=stDataFrame]'))
    .map(part => part.innerText.slice(0, 40))"""
"""The texts and buttons that stand beyond the right edge, but for those in a frame that scrolls."""


def test_a_step_is_done_by_keyboard_and_remembered_by_the_browser(page: Page, server: Server):
    page.goto(server.link("lessons", lesson="query-key-value"))
    page.get_by_role("radio", name="C", exact=True).focus()
    page.keyboard.press("Space")
    commit = page.get_by_role("button", name="That is my prediction")
    expect(commit).to_be_enabled()
    commit.press("Enter")
    expect(page.get_by_text("The answer is A.")).to_be_visible()
    query = page.get_by_role("button", name=re.compile("^query at 1.5, −1.0"))
    query.focus()
    for _ in range(5):
        page.keyboard.press("Shift+ArrowLeft")
    moved = page.get_by_role("button", name=re.compile("^query at −1.0, −1.0"))
    expect(moved).to_be_focused()
    expect(page).to_have_url(re.compile("points%3D-1%2C-1"))
    expect(page.get_by_role("row", name=re.compile(r"^C \(−1.5, −1.5\) 3.00 2.12 0.9"))).to_be_visible()

    page.goto(server.link("lessons"))
    expect(page.get_by_text("1 of 4 steps done")).to_be_visible()
    page.reload()
    expect(page.get_by_text("1 of 4 steps done")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("step", "answers"), [(1, "0"), (3, "n.n.33")], ids=["beside the keys", "on their lines"])
def test_a_lesson_fits_a_phone_and_its_query_can_be_dragged(page: Page, server: Server, step: int, answers: str):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(server.link("lessons", lesson="query-key-value", step=step, answers=f"query-key-value.{answers}"))
    expect(page.get_by_role("button", name=re.compile("^value C"))).to_be_visible()
    wide = "() => document.scrollingElement.scrollWidth - window.innerWidth"
    assert page.evaluate(wide) <= 0
    handle = page.get_by_role("button", name=re.compile("^query at"))
    wait_for_rest(page)
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("points"))


@pytest.mark.slow
def test_the_triangle_of_the_values_is_drawn_once_it_is_no_longer_the_question(page: Page, server: Server):
    corners = page.locator("polygon.hull")
    for step, answers, drawn in ((1, "0", ""), (4, "n.n.n.0", "275,")):
        page.goto(server.link("lessons", lesson="query-key-value", step=step, answers=f"query-key-value.{answers}"))
        expect(page.get_by_role("button", name=re.compile("^value C"))).to_be_visible()
        expect(corners).to_have_attribute("points", re.compile(f"^{drawn}" if drawn else "^$"))


def tab_to(page: Page, goal: Locator) -> None:
    """Presses Tab until the focus is there."""
    expect(goal).to_be_visible()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if goal.evaluate("element => element === element.getRootNode().activeElement"):
            return
    raise AssertionError(f"{MOST_TABS} times Tab do not reach {goal}")


def predict(page: Page, step: Step, *, right: bool) -> None:
    """Gives the right answer, or a wrong one, by keyboard alone."""
    scale, truth = step.answer, step.truth(BENCH).value
    commit = page.get_by_role("button", name="That is my prediction")
    if isinstance(scale, Options):
        expect(commit).to_be_disabled()
        tab_to(page, page.get_by_role("radio").first)
        page.keyboard.press("Space")
        for _ in range(int(truth) if right else (int(truth) + 1) % len(scale.texts)):
            page.keyboard.press("ArrowDown")
    elif isinstance(scale, Drawing):
        for name, place in zip(scale.rows, scale.places(truth), strict=True):
            expect(commit).to_be_disabled()
            tab_to(page, page.get_by_role("radio", name=f"{name}: {scale.columns[0]}"))
            page.keyboard.press("Space")
            for _ in range(place if right else (place + 1) % len(scale.columns)):
                page.keyboard.press("ArrowRight")
    else:
        far = scale.least if truth - scale.least > scale.close else scale.most
        slide(page, page.get_by_role("slider").first, round(truth) if right else far)
    expect(commit).to_be_enabled()
    tab_to(page, commit)
    page.keyboard.press("Enter")


def slide(page: Page, slider: Locator, goal: int) -> None:
    """Moves a slider of whole numbers, one by one."""
    tab_to(page, slider)
    start = int(slider.input_value())
    for _ in range(abs(goal - start)):
        page.keyboard.press("ArrowRight" if goal > start else "ArrowLeft")
    expect(slider).to_have_value(str(goal))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "right"), [(390, False), (1280, True)], ids=["wrong on a phone", "right on a desk"])
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_a_whole_lesson_is_done_by_keyboard_alone(page: Page, server: Server, lesson: Lesson, width: int, right: bool):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme="light" if right else "dark")
    page.goto(server.link("lessons", lesson=lesson.slug))
    load_axe(page)
    for number, step in enumerate(lesson.steps, 1):
        expect(page.get_by_role("heading", name=re.compile(step.title[:20]))).to_be_visible()
        assert not (found := serious(page)), f"step {number}, asked: {found}"
        predict(page, step, right=right)
        verdict = "You (said|drew) .*(that is right|which is close)" if right else r"You (said|drew) .*The answer is"
        expect(page.get_by_text(re.compile(verdict))).to_be_visible()
        watch_layout(page)  # not before: the answer was asked for, however late it comes
        onwards = page.get_by_role("button", name="All lessons" if number == len(lesson.steps) else "Next step").last
        expect(onwards).to_be_visible()
        assert page.evaluate("() => document.scrollingElement.scrollWidth - window.innerWidth") <= 0
        spilt = page.evaluate(_SPILT)
        assert not spilt, f"step {number}: {spilt}"
        check_layout(page)
        assert not (found := serious(page)), f"step {number}, answered: {found}"
        if any(control.options for control in step.controls):
            before, option = page.url, page.locator(".st-key-lesson-controls").get_by_role("radio")
            tab_to(page, option.first)
            if option.nth(1).get_attribute("aria-checked") != "true":
                page.keyboard.press("ArrowRight")
            page.keyboard.press("Space")
            page.wait_for_url(lambda url, before=before: url != before)
            expect(onwards).to_be_visible()
        tab_to(page, onwards)
        page.keyboard.press("Enter")
    expect(page.get_by_text(f"all {len(lesson.steps)} steps done")).to_be_visible()
