"""Keeps a learner's progress in the browser, so that a lesson can be left and taken up again without its link."""

from dataclasses import replace

import streamlit as st

from pages.learn.choices import PAGE
from pages.learn.lessons import LESSONS
from pages.learn.progress import read_progress
from pages.shared.components.frontend import declared, reported

_KEY = "lesson-progress"
_TAKEN = "lesson-progress-taken"
_component = declared("lesson_progress", css=(), js=("lesson_progress.js",))


def keep_progress() -> None:
    """Takes up what the browser remembers, once a session, and lets it remember what is answered since.

    What the link says of a step counts. Damaged memory is ignored.
    """
    stored = reported(_KEY).get("stored")
    if isinstance(stored, str) and not st.session_state.get(_TAKEN):
        st.session_state[_TAKEN] = True
        remembered, _ = read_progress(stored, LESSONS)
        PAGE.put(replace(PAGE.now, progress=PAGE.now.progress.joined(remembered)))
    with st.container(key="lesson-progress-place"):
        _component(key=_KEY, on_stored_change=lambda: None, data=_news())


def _news() -> dict[str, str | bool]:
    return {"progress": str(PAGE.now.progress), "taken": bool(st.session_state.get(_TAKEN))}
