"""The visitor's view between reruns and pages, kept equal to the URL.

A URL with any of our parameters describes a view completely. A URL with none of them (a click in the navigation) leaves
the visitor's view as it is.

Whose URL is it? The browser may send a request before it has the last URL. So a run that a control of the page caused,
or a part of the page that runs alone, begins with the last one, whatever came. What differs from the last in any other
run is a link's, a reload's or the back button's: each part of the page takes from it what is its own, once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shared.registry import RegisteredPage
from pages.shared.url.cause import is_by_control
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
    last: dict[str, list[str]] = field(default_factory=dict)
    """All query parameters as the session last wrote or read them."""
    link: dict[str, list[str]] = field(default_factory=dict)
    """The parameters that the last link names."""
    taken_by: set[str] = field(default_factory=set)
    """The parts of the page that have taken from it what is their own."""
    arrived: bool = False
    """True if this run shows the target of a link to the page that was open already: it told the page its parameters
    and left the browser's address as it was, so they are to be written again."""
    page: str = ""
    """The title of the page being shown."""
    chosen: bool = False
    """True once the visitor has chosen a model, a sentence or a switch, or followed a link to them."""
    switched_on: str = ""
    """The title of the page on which a switch was last chosen, or opened by a link."""
    changes: int = 0
    """Counts changes, so that a popover that was used can be drawn anew, closed, and sentences about a link go."""


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
    memory.changes += 1


def start_afresh() -> None:
    """Forgets model, sentence, head and switches, so that the page shows what it opens on; for callbacks."""
    choose(model="", text="", switches=())
    session().chosen = False


def enter_page(title: str) -> None:
    """Notes which page is shown, and whose URL came with it; to be called before the run draws any field.

    A link to another page has the last word: a control of the page before may have been used just before, and a busy
    server folds both requests into one run.
    """
    memory = session()
    is_new, memory.page = memory.page != title, title
    is_ours = not is_new and is_by_control() and not went_back()
    if is_ours:
        _catch_up()
    found = _in_url(st.query_params)
    memory.arrived = not is_new and not is_ours and found != memory.last
    if is_new or memory.arrived:
        memory.link, memory.taken_by = found, set()
    memory.last = found


def enter_fragment() -> None:
    """Lets a part of a page that runs alone, and a whole run that it asks for, begin with the last URL: the request may
    have left the browser before that arrived there, however long ago. Whoever follows a link runs the whole page."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None and context.fragment_ids_this_run:
        session().arrived = False
        _catch_up()


def _catch_up() -> None:
    """Puts the last URL in place of the one that came. The browser has been told of it already."""
    context, last = get_script_run_ctx(), session().last
    if context is None:
        return
    with context.session_state.query_params() as url:
        url.clear_with_no_forward_msg(preserve_embed=True)
        for name, values in last.items():
            url.set_with_no_forward_msg(name, values)
    context.query_string = urlencode(last, doseq=True)


def take_link(part: str, names: Iterable[str], now: Mapping[str, str | list[str]]) -> dict[str, list[str]]:
    """Returns what the last link says of these parameters, to each part of the page once; empty if it is nothing else
    than there is `now`."""
    memory = session()
    if part in memory.taken_by:
        return {}
    memory.taken_by.add(part)
    found = {name: memory.link[name] for name in names if name in memory.link}
    return {} if found == _as_lists(now) else found


def follow_url() -> None:
    """Takes over the URL's view where a link, a reload or the back button brought it."""
    memory = session()
    _take_pick()
    if found := take_link(_KEY, View.names(), memory.view.parameters()):
        memory.view, memory.problems = View.read(found)
        memory.chosen = True
        memory.switched_on = memory.page
        memory.draft = None


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
    """Puts the view, and what the page being shown adds to it, into the URL."""
    memory = session()
    wanted = memory.view.parameters() | memory.own
    if memory.arrived or _in_url(st.query_params) != _as_lists(wanted):
        st.query_params.from_dict(wanted)
    note_url()


def write_part(names: Iterable[str], parameters: Mapping[str, str | list[str]]) -> None:
    """Puts the parameters of one part of a page into the URL, and takes its others out of it."""
    found, wanted = _in_url(names), _as_lists(parameters)
    if session().arrived or found != wanted:
        st.query_params.update(wanted)
    for name in found.keys() - wanted.keys():
        del st.query_params[name]
    note_url()


def note_url() -> None:
    """Remembers the URL as it is now: the browser has it once it took over this run."""
    session().last = _in_url(st.query_params)


def is_late() -> bool:
    """Tells, in a callback, whether the browser sent its request before it had the last URL: its fields lag too."""
    return session().last != _in_url(st.query_params) and not went_back()


def went_back() -> bool:
    """Tells whether the browser's back or forward button caused this run."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def problems(*places: str) -> tuple[str, ...]:
    """Returns the sentences that belong beside these controls."""
    return tuple(problem.sentence for problem in session().problems if problem.place in places)


def _in_url(names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the query parameters of these names that the URL holds."""
    return {name: st.query_params.get_all(name) for name in names if name in st.query_params}


def _as_lists(parameters: Mapping[str, str | list[str]]) -> dict[str, list[str]]:
    """Returns query parameters as `_in_url` does: each as the list of its values."""
    return {name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
