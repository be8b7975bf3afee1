"""The visitor's view between reruns and pages, kept equal to the URL.

A URL with any of our parameters describes a view completely. A URL with none of them (a click in the navigation) leaves
the visitor's view as it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shared.registry import RegisteredPage
from pages.shared.url.url_state import Problem
from pages.shared.url.view_state import View

_KEY = "attention-lab"
GRID = "head-grid"
"""Key of the grid of heads; with more behind it, of one that is drawn while the output is written."""
MATRIX = "head"
"""Key of the matrix whose cells can be clicked."""


@dataclass
class Session:
    """The memory of one visitor's session."""

    view: View = field(default_factory=View)
    problems: tuple[Problem, ...] = ()
    """Sentences about the last link or change; gone with the next change."""
    draft: str | None = None
    """The text in the sentence field if it is no sentence that can be shown."""
    texts: dict[str, str] = field(default_factory=dict)
    """The last sentence shown with each model."""
    previous: dict[str, str] = field(default_factory=dict)
    """The sentence shown before that one."""
    own: dict[str, str | list[str]] = field(default_factory=dict)
    """Query parameters that belong to the page being shown alone."""
    lesson: dict[str, str | list[str]] = field(default_factory=dict)
    """Query parameters of the lesson that the visitor has open; empty while there is none."""
    written: dict[str, list[str]] | None = None
    """The query parameters of the view as this session last wrote them."""
    shown: dict[str, list[str]] | None = None
    """All query parameters as the session last wrote them."""
    last: dict[str, list[str]] | None = None
    """All query parameters, a page's own among them, as last noted."""
    arrived: bool = False
    """True if this run shows the target of a link."""
    page: str = ""
    """The title of the page being shown."""
    chosen: bool = False
    """True once the visitor has chosen a model, a sentence or a switch, or followed a link to them."""
    switched_on: str = ""
    """The title of the page on which a switch was last chosen, or opened by a link."""
    touched: bool = False
    """True if a control was changed since the last run: it goes before a URL that is on its way."""
    changes: int = 0
    """Counts changes, so that a popover that was used can be drawn anew, closed."""


def session() -> Session:
    """Returns this session's memory."""
    return st.session_state.setdefault(_KEY, Session())


def is_lesson(page: RegisteredPage) -> bool:
    """Tells whether this page, which is on show, shows a lesson and not the list of them."""
    return page.folder == "learn" and bool(session().lesson)


def choose(**changes: Any) -> None:
    """Changes the view on behalf of the visitor; for callbacks."""
    memory = session()
    memory.view = memory.view.changed(**changes)
    memory.chosen |= not changes.keys().isdisjoint(("model", "text", "switches"))
    if "switches" in changes:
        memory.switched_on = memory.page
    memory.problems = ()
    memory.touched = True
    memory.changes += 1


def start_afresh() -> None:
    """Forgets model, sentence, head and switches, so that the page shows what it opens on; for callbacks."""
    choose(model="", text="", switches=())
    session().chosen = False


def stay() -> None:
    """Keeps the view in a run that a control caused: its request may carry the URL from before the last change.

    For callbacks of controls that change nothing in the view, such as a menu that opens.
    """
    session().touched = True


def enter_page(title: str) -> None:
    """Notes which page is being shown. When it differs from the last one, the link to it has the last word.

    A control of the page before may have been used just before the link was followed: a busy server folds both requests
    into one run, or the link's run cuts the control's short, so that nothing takes back what it asked for.
    """
    memory = session()
    if memory.page != title:
        memory.page, memory.touched = title, False


def follow_url() -> None:
    """Takes over the URL's view where someone else than this session wrote it: a link, a reload, the back button."""
    memory = session()
    _take_pick()
    found = in_url(View.names())
    if found and found != memory.written and not memory.touched:
        memory.view, memory.problems = View.read(found)
        memory.chosen = True
        memory.switched_on = memory.page
        memory.draft = None
    memory.touched = False


def _take_pick() -> None:
    """Takes over a head or an entry picked in a picture: these report in the run itself, not by a callback."""
    for key in [key for key in st.session_state if str(key).startswith(GRID)]:
        if (head := _picked(str(key), 2)) is not None:
            choose(layer=head[0], head=head[1])
    if (cell := _picked(MATRIX, 4)) is not None:
        choose(layer=cell[0], head=cell[1], cell=(cell[2], cell[3]), combine=session().view.combine)
    if (cell := _picked(MATRIX, 4, "forbidden")) is not None:
        choose(switches=session().view.with_entry_flipped(cell[0], cell[2], cell[3]).switches)


def _picked(key: str, length: int, name: str = "picked") -> list[int] | None:
    state = st.session_state.get(key)
    value = state.get(name) if isinstance(state, dict) else None
    if isinstance(value, list) and len(value) == length and all(isinstance(i, int) and i >= 0 for i in value):
        return value
    return None


def write_url() -> None:
    """Puts the view, and what the page being shown adds to it, into the URL.

    A link to the page that is open already tells the page its parameters and leaves the browser's address as it was:
    what another than this session wrote is written again.
    """
    memory = session()
    parameters = memory.view.parameters()
    memory.written, wanted = as_lists(parameters), as_lists(parameters | memory.own)
    found = in_url(st.query_params)
    memory.arrived = found == wanted and memory.shown not in (None, wanted)
    if found != wanted or memory.arrived:
        st.query_params.from_dict(parameters | memory.own)
    memory.shown = wanted
    note_url()


def note_url(*names: str) -> None:
    """Remembers these parameters as the URL now has them, or all: the browser has them once it took over this run.

    A part of a page notes its own: the others may be those of a browser that lags behind.
    """
    memory = session()
    kept = {name: values for name, values in (memory.last or {}).items() if names and name not in names}
    memory.last = kept | in_url(names or st.query_params)


def end_run() -> None:
    """Remembers the URL as a run of the whole page leaves it. What a control asked for was for that run: the next one
    may be a link's."""
    note_url()
    session().touched = False


def end_fragment() -> None:
    """Does the latter for a part of a page, where it ran alone."""
    context = get_script_run_ctx()
    if context is not None and context.fragment_ids_this_run:
        session().touched = False


def is_late() -> bool:
    """Tells, in a callback, whether the browser sent its request before it had the last URL: its fields lag too."""
    return session().last not in (None, in_url(st.query_params)) and not went_back()


def catch_up() -> None:
    """Puts the last URL in place of a late one where a fragment runs alone: none of the page's other parts will."""
    context, last = get_script_run_ctx(), session().last
    if context is not None and context.fragment_ids_this_run and last is not None and in_url(st.query_params) != last:
        st.query_params.from_dict(last)


def keep_last_url() -> None:
    """Lets a run of the whole page that a fragment asks for begin with the last URL: the fragment's request may have
    left the browser before that arrived there, however long ago. Whoever follows a link runs the whole page."""
    context, last = get_script_run_ctx(suppress_warning=True), session().last
    if context is not None and context.fragment_ids_this_run and last is not None:
        context.query_string = urlencode(last, doseq=True)


def went_back() -> bool:
    """Tells whether the browser's back or forward button caused this run."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def problems(*places: str) -> tuple[str, ...]:
    """Returns the sentences that belong beside these controls."""
    return tuple(problem.sentence for problem in session().problems if problem.place in places)


def in_url(names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the query parameters of these names that the URL holds."""
    return {name: st.query_params.get_all(name) for name in names if name in st.query_params}


def as_lists(parameters: Mapping[str, str | list[str]]) -> dict[str, list[str]]:
    """Returns query parameters as `in_url` does: each as the list of its values."""
    return {name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
