"""What the timeline remembers of a visitor, kept equal to the URL."""

from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from pages.training.timeline.frames import Timeline
from pages.training.timeline.view import PARAMETERS, TimelineView, read

_KEY = "attention-lab-timeline"


@dataclass
class TimelineState:
    """One visitor's timeline."""

    view: TimelineView = field(default_factory=TimelineView)
    reel: Timeline = field(default_factory=Timeline)
    problems: tuple[str, ...] = ()
    """Sentences about a link or the last sentence typed; gone with the next change."""
    draft: str | None = None
    """What stands in the sentence field where it is no sentence that can be shown."""
    order: int = 0
    """Counts how often the step was set by a link rather than by the slider."""
    reported: int | None = None
    """Which of the slider's reports was the last that was taken over."""
    held: bool = False
    """Whether the visitor stopped the computing of this reel."""
    written: dict[str, list[str]] | None = None
    """The query parameters of the timeline as this session last wrote them."""
    touched: bool = False
    """Whether a control was changed since the last run: its word then goes before that of a URL on its way."""


def timeline() -> TimelineState:
    """This session's timeline."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = TimelineState()
    return st.session_state[_KEY]


def choose(**changes: Any) -> None:
    """Changes the view on behalf of the visitor; for callbacks too."""
    now = timeline()
    now.view, now.problems, now.touched = replace(now.view, **changes), (), True


def show_reel(run_id: str, text: str) -> Timeline:
    """The reel of this run and sentence: the one at hand, or an empty one."""
    now = timeline()
    if (now.reel.run, now.reel.text) != (run_id, text):
        now.reel, now.held = Timeline(run=run_id, text=text), False
    return now.reel


def follow_url() -> None:
    """Takes over the timeline from the URL where someone else wrote it: a link, a reload, the back button."""
    now, in_url = timeline(), in_query()
    if in_url and in_url != now.written and not now.touched:
        now.view, now.problems = read(in_url)
        now.draft = None
        now.order += 1
        now.written = in_url
    now.touched = False


def write_url() -> None:
    """Puts the timeline into the URL, beside what the page has there."""
    now = timeline()
    wanted = now.view.parameters()
    now.written = {name: [value] for name, value in wanted.items()}
    found = in_query()
    if changed := {name: value for name, value in wanted.items() if found.get(name) != [value]}:
        st.query_params.update(changed)
    for name in found.keys() - wanted.keys():
        del st.query_params[name]


def in_query() -> dict[str, list[str]]:
    """The timeline's parameters as the URL has them; a page that replaces the URL keeps them."""
    return {name: st.query_params.get_all(name) for name in PARAMETERS if name in st.query_params}
