"""The list of lessons, each with its question and how far the learner is."""

import streamlit as st

from pages.learn.choices import Choices, open_step, open_summary, start_again
from pages.learn.lesson import Lesson
from pages.learn.lessons import LESSONS
from pages.learn.progress import Progress
from pages.shared.texts.catalogue import Texts
from transformer.access.classroom import classroom, may_pin, set_classroom

TEXTS = Texts("learn")


def render_overview(chosen: Choices) -> None:
    """Renders the lessons in their order, the next one to do marked by its button."""
    st.markdown(f"# {TEXTS('list.heading')}")
    st.markdown(TEXTS("list.how"))
    if any(map(chosen.progress.done, LESSONS)):
        st.button(TEXTS("list.found"), icon=":material/bookmark:", key="lesson-summary", on_click=open_summary)
    chosen_for_class = classroom().lesson
    ordered = sorted(enumerate(LESSONS, 1), key=lambda numbered: numbered[1].slug != chosen_for_class)
    upcoming = next((lesson for lesson in LESSONS if chosen.progress.done(lesson) < len(lesson.steps)), None)
    for number, lesson in ordered:
        _row(number, lesson, chosen.progress, primary=lesson is upcoming, pinned=lesson.slug == chosen_for_class)


def _row(number: int, lesson: Lesson, progress: Progress, *, primary: bool, pinned: bool) -> None:
    done, n_steps = progress.done(lesson), len(lesson.steps)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key=f"lesson-row-{lesson.slug}"):
        with st.container(width="stretch", gap=None):
            st.markdown(f"**{number} · {lesson.title}**")
            whose = f"{TEXTS('list.pinned')} · " if pinned else ""
            minutes = TEXTS("list.minutes", n=lesson.minutes)
            st.caption(f"{whose}{lesson.question} · {_stand(done, n_steps)} · {minutes}")
        if may_pin():
            st.button(
                TEXTS("list.unpin") if pinned else TEXTS("list.pin"),
                key=f"lesson-pin-{lesson.slug}",
                type="tertiary",
                help=TEXTS("list.pin_help"),
                on_click=_pin,
                args=(None if pinned else lesson,),
            )
        if done == n_steps:
            st.button(TEXTS("list.again"), key=f"lesson-{lesson.slug}", on_click=start_again, args=(lesson,), width=104)
        else:
            st.button(
                TEXTS("list.go_on") if done else TEXTS("list.start"),
                key=f"lesson-{lesson.slug}",
                type="primary" if primary else "secondary",
                on_click=open_step,
                args=(lesson, progress.next_step(lesson)),
                width=104,
            )


def _pin(lesson: Lesson | None) -> None:
    set_classroom(lesson="" if lesson is None else lesson.slug, lesson_title="" if lesson is None else lesson.title)


def _stand(done: int, n_steps: int) -> str:
    if done == n_steps:
        return TEXTS("list.all_done", n=n_steps)
    return TEXTS("list.some_done", done=done, n=n_steps) if done else TEXTS("list.steps", n=n_steps)
