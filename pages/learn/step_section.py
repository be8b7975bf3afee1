"""One step of a lesson: the text, the prediction, the live figure, the comparison, and what to keep."""

import re
from functools import partial

import numpy as np
import streamlit as st

from pages.learn.answers import compared, get_truth
from pages.learn.choices import (
    Choices,
    give_answer,
    open_list,
    open_step,
    set_control,
)
from pages.learn.drawing import draws
from pages.learn.lesson import Drawing, Lesson, Options, Step
from pages.learn.lessons import LESSONS
from pages.learn.teacher import teachers_link
from pages.shared import fields
from pages.shared.bench.shared_bench import BENCH
from pages.shared.components.draw_matrix import draw_matrix, drawn_places
from pages.shared.components.small_matrices import SmallMatrix, small_matrices
from pages.shared.context import say, sentence
from pages.shared.exhibit import CANNOT_SHOW, exhibit
from pages.shared.registry import PAGES
from pages.shared.texts.catalogue import Texts

TEXTS = Texts("learn")
_TEXT_WIDTH = 760


def render_step(lesson: Lesson, index: int, chosen: Choices) -> None:
    """Renders a step of a lesson; what follows the prediction is drawn once that is made."""
    step, answer = lesson.steps[index], chosen.progress.answer(lesson, index)
    _head(lesson, index, chosen)
    with st.container(width=_TEXT_WIDTH, key="lesson-text"):
        st.markdown(_unbroken(step.text))
        _predict(lesson, index, answer)
    if answer is None:
        return
    with st.container(width=_TEXT_WIDTH, key="lesson-compared"):
        _compare(lesson, index, answer)
    _do(step, chosen)
    with st.container(width=_TEXT_WIDTH, key="lesson-keep"):
        st.markdown(TEXTS("step.keep", kept=step.keep))
        _way_on(lesson, index, answered=True)
        if index == len(lesson.steps) - 1:
            _onwards(lesson)


def _head(lesson: Lesson, index: int, chosen: Choices) -> None:
    step, n_steps = lesson.steps[index], len(lesson.steps)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(TEXTS("all"), icon=":material/arrow_back:", type="tertiary", key="lesson-list", on_click=open_list)
        st.caption(TEXTS("step.place", lesson=lesson.title, step=index + 1, steps=n_steps), width="content")
        teachers_link(chosen)
    st.markdown(f"# {step.title}")


def _unbroken(text: str) -> str:
    """Returns Markdown in which code stays on one line."""
    return re.sub("`[^`]+`", lambda code: code[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def _predict(lesson: Lesson, index: int, answer: int | None) -> None:
    """Renders the question, and until it is answered a form: an arrow key chooses, a button commits."""
    st.markdown(TEXTS("step.predict", question=lesson.steps[index].question))
    if answer is not None:
        st.empty()  # in the form's place, which so goes at once and not when all is drawn
        return
    with st.container():  # not within st.empty: that takes the form away for a moment, and the focus with it
        _form(lesson, index)
        _way_on(lesson, index, answered=False)


def _form(lesson: Lesson, index: int) -> None:
    step = lesson.steps[index]
    key = f"guess-{lesson.slug}-{index}"
    if isinstance(step.answer, Options):
        texts = step.answer.texts
        guess = st.radio(
            step.question,
            range(len(texts)),
            index=None,
            format_func=texts.__getitem__,
            key=key,
            label_visibility="collapsed",
        )
    elif isinstance(step.answer, Drawing):
        matrix = step.answer
        draw_matrix(matrix.rows, matrix.columns, label=step.question, kind="cross", key=key)
        guess = _drawn(matrix, key)
    else:
        scale = step.answer
        middle = (scale.least + scale.most) // (2 * scale.step) * scale.step
        guess = st.slider(
            step.question,
            scale.least,
            scale.most,
            middle,
            scale.step,
            key=key,
            format=f"%d{scale.unit.replace('%', '%%')}",
            label_visibility="collapsed",
        )
    st.button(
        TEXTS("step.commit"),
        type="primary",
        key=f"commit-{lesson.slug}-{index}",
        disabled=guess is None,
        on_click=_commit,
        args=(lesson, index, key),
    )


def _commit(lesson: Lesson, index: int, key: str) -> None:
    """Takes the guess as it stands now: it may have changed after the page was last drawn."""
    answer = lesson.steps[index].answer
    guess = _drawn(answer, key) if isinstance(answer, Drawing) else st.session_state.get(key)
    if guess is not None:
        give_answer(lesson, index, int(guess))


def _drawn(matrix: Drawing, key: str) -> int | None:
    """Returns what the visitor drew; None until every row has a mark."""
    places = drawn_places(key, len(matrix.rows), len(matrix.columns))
    return None if None in places else matrix.number([place for place in places if place is not None])


def _picture(matrix: Drawing, answer: float, name: str, label: str) -> SmallMatrix:
    return SmallMatrix(name, label, np.eye(len(matrix.columns))[list(matrix.places(answer))])


def _compare(lesson: Lesson, index: int, answer: int) -> None:
    """Renders the prediction beside what the model says."""
    with st.container(border=True, key="lesson-answer"):
        box = st.empty()
    box.markdown(TEXTS("step.asking"))
    try:
        truth = get_truth(lesson.slug, index, lesson)
    except CANNOT_SHOW as error:
        with box:
            say(sentence(str(error)))
        return
    right, said = compared(lesson.steps[index], answer, truth)
    matrix = lesson.steps[index].answer
    icon = ":green[:material/check_circle:]" if right else ":orange[:material/lightbulb:]"
    box.markdown(f"{icon} {said} {truth.told}")
    if isinstance(matrix, Drawing):
        drawn = _picture(matrix, answer, "guess", TEXTS("step.drawn"))
        found = _picture(matrix, truth.value, "truth", TEXTS("step.found"))
        small_matrices((drawn, found), label=TEXTS("step.drawings"), kind="cross", key="lesson-drawings")


def _do(step: Step, chosen: Choices) -> None:
    """Renders the controls and the live figures under them."""
    settings = chosen.settled(step)
    st.markdown(TEXTS("step.do", suggested=step.do), width=_TEXT_WIDTH)
    shown = [control for control in step.controls if control.options]
    if shown:
        with st.container(horizontal=True, gap="medium", key="lesson-controls"):
            for control in shown:
                take = partial(set_control, control.name)
                label, options, now = control.label, control.options, settings[control.name]
                if chosen.locked:
                    st.markdown(f"{label}: **{options[now]}** :material/lock:", width="content")
                else:
                    with st.container(width="content", gap=None):
                        st.caption(label)
                        fields.segments(label, options, now, take, key=f"lesson-control-{control.name}")
    if chosen.locked and step.controls:
        st.caption(TEXTS("step.locked"))
    try:
        scene = step.scene(BENCH, settings)
    except CANNOT_SHOW as error:
        say(sentence(str(error)))
        return
    for text in scene.lines:
        st.markdown(text)
    places = st.columns(len(scene.parts)) if scene.beside else [st.container() for _ in scene.parts]
    for number, (part, place) in enumerate(zip(scene.parts, places, strict=True)):
        with place:
            if part.title:
                st.markdown(f"### {part.title}")
            exhibit(part.subject, part.view, key=f"lesson-{number}", draw=draws(part, locked=chosen.locked))


def _way_on(lesson: Lesson, index: int, *, answered: bool) -> None:
    last = index == len(lesson.steps) - 1
    with st.container(horizontal=True, gap="small"):
        if index:
            st.button(TEXTS("step.back"), key="lesson-back", on_click=open_step, args=(lesson, index - 1))
        if not last:
            label = TEXTS("step.next") if answered else TEXTS("step.skip")
            kind = "primary" if answered else "tertiary"
            st.button(label, type=kind, key="lesson-next", on_click=open_step, args=(lesson, index + 1))
        elif answered:
            if following := _following(lesson):
                label = TEXTS("step.following", lesson=following.title)
                st.button(label, type="primary", key="lesson-following", on_click=open_step, args=(following, 0))
            kind = "tertiary" if following else "primary"
            st.button(TEXTS("all"), type=kind, key="lesson-end", on_click=open_list)


def _following(lesson: Lesson) -> Lesson | None:
    place = [each.slug for each in LESSONS].index(lesson.slug)
    return LESSONS[place + 1] if place + 1 < len(LESSONS) else None


def _onwards(lesson: Lesson) -> None:
    """Renders the way to the page where the lesson's subject can be looked at further."""
    page = next((page for page in PAGES if page.folder == lesson.page), None)
    if page is not None:
        st.page_link(page.path, label=lesson.onwards, icon=":material/arrow_forward:", query_params=lesson.view)
