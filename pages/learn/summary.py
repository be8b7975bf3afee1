"""The summary of what the learner found: the sentences to keep, and each question with the guess and the answer."""

from collections.abc import Iterator

import streamlit as st

from pages.learn.answers import compared, get_truth
from pages.learn.choices import Choices, open_list
from pages.learn.lesson import Lesson
from pages.learn.lessons import LESSONS
from pages.learn.progress import Progress
from pages.shared.context import say, sentence
from pages.shared.exhibit import CANNOT_SHOW
from pages.shared.texts.catalogue import Texts

TEXTS = Texts("learn")
_WIDTH = 760


def render_summary(chosen: Choices) -> None:
    """Renders the summary, to read, to print with the browser, or to keep as a file."""
    progress = chosen.progress
    st.button(TEXTS("all"), icon=":material/arrow_back:", type="tertiary", key="lesson-list", on_click=open_list)
    st.markdown(heading := f"# {TEXTS('summary.heading')}")
    if not any(map(progress.done, LESSONS)):
        st.markdown(TEXTS("summary.empty"))
        return
    written, rights = list[str](), list[bool]()
    with st.container(width=_WIDTH, key="lesson-found"):
        counted = st.empty()
        for number, lesson in enumerate(LESSONS, 1):
            if not progress.done(lesson):
                continue
            st.markdown(title := f"## {number} · {lesson.title}")
            written.append(title)
            for right, said in _found(lesson, progress):
                st.markdown(said)
                written.append(said)
                rights.append(right)
        counted.markdown(said := TEXTS("summary.right", right=sum(rights), n=len(rights)))
        st.download_button(
            TEXTS("summary.file"),
            "\n\n".join((heading, said, *written, "")),
            file_name="what-i-found.md",
            mime="text/markdown",
            key="lesson-found-file",
            icon=":material/download:",
            on_click="ignore",
        )
        st.caption(TEXTS("summary.paper"))


def _found(lesson: Lesson, progress: Progress) -> Iterator[tuple[bool, str]]:
    """Yields whether a prediction was right, and its step: the sentence to keep, and the question with both answers."""
    for index, step in enumerate(lesson.steps):
        if (answer := progress.answer(lesson, index)) is None:
            continue
        try:
            truth = get_truth(lesson.slug, index, lesson)
        except CANNOT_SHOW as error:
            say(sentence(str(error)))
            continue
        right, said = compared(step, answer, truth)
        yield right, f"### {step.title}\n\n{step.keep}\n\n{step.question} {said}"
