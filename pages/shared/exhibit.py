"""A figure as pages show it: the picture, then one row with its checks and its export."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import streamlit as st

from pages.shared.cache import cached
from pages.shared.checks import badge
from pages.shared.context import is_dark, say, sentence
from pages.shared.exports import Export, InFrame, export, papered
from pages.shared.scrolling_figure import scrolling_figure
from transformer.analysis.checks import Check
from transformer.checkpoints.settings import CheckpointError
from transformer.data.cleaning import CorpusError
from transformer.runs.status import RunError
from transformer.views.view import (
    Document,
    Subject,
    View,
    checks_of,
    data_of,
    data_options,
    file_name,
    given,
    program,
    source,
)

D = TypeVar("D")

CANNOT_SHOW = (ValueError, CheckpointError, CorpusError, RunError)
"""What `data` raises where there is nothing to show; its message is said instead."""


def exhibit(
    subject: Subject,
    view: View[D],
    *,
    key: str = "",
    draw: Callable[[D], object] | None = None,
    also: Mapping[str, View[Any]] | None = None,
    said: str = "",
    width: int = 900,
    live: bool = False,
) -> D | None:
    """Draws a view of a subject with its checks and its export; returns its data, for sentences, or None where there is
    nothing to show, which it says.

    `key` tells apart two views of one class on a page. `draw` draws the data in place of the view's figure, which then
    is what the export holds. `also` are views of the same subject that its export offers too, by their names. `said`
    stands in the saved file. `width` is that of a saved figure which has none of its own. `live` data changes all the
    time, as that of a run at work: it is not remembered, and an open badge keeps what it found.
    """
    try:
        data = data_of(view, subject) if live else get_data(subject, view)
    except CANNOT_SHOW as error:
        say(sentence(str(error)))
        return None
    own = key_of(view, key)
    _draw(view, data, own, draw)
    figures = {"This figure": partial(_away, subject, view, own, width)}
    for name, other in (also or {}).items():
        figures[name] = partial(_away, subject, other, own, width)
    with st.container(horizontal=True, gap="small"):
        shown = (view, subject) if live else data
        badge(_held(f"{own}-proof", shown, partial(checks_of, view, subject, data)), key=f"{own}-proof")
        export(_page(), figures, key=f"{own}-export", said=" · ".join(filter(None, (subject.origin.caption, said))))
    return data


def get_data(subject: Subject, view: View[D]) -> D:
    """The view's data of a subject, remembered and shared by all visitors; CANNOT_SHOW as `view.data`."""
    kind = type(view)
    return _data(
        f"{kind.__module__}.{kind.__qualname__}", data_options(view), tuple(given(subject).values()), view, subject
    )


def key_of(view: View[Any], key: str = "") -> str:
    """The key of a view's chart, which those of its other elements begin with: its class and `key`."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(view).__name__).lower()
    return f"{name}-{key}" if key else name


def _page() -> str:
    """The end of the address of the page that is open."""
    return urlsplit(st.context.url or "").path.rsplit("/", 1)[-1] or "home"


@cached(max_entries=64, shared=True)
def _data(kind: str, options: str, given: tuple[Any, ...], _view: View[Any], _subject: Subject) -> Any:
    return data_of(_view, _subject)


def _draw(view: View[D], data: D, key: str, draw: Callable[[D], object] | None) -> None:
    if draw is not None:
        draw(data)
    elif isinstance(view, Document):
        with st.container(key=f"{key}-frame"):
            st.iframe(view.document(data, dark=is_dark()), height=view.height(data))
    else:
        scrolling_figure(view.figure(data, dark=is_dark()), key=key)


def _away(subject: Subject, view: View[Any], key: str, width: int) -> Export:
    """Collects what the export offers of a view."""
    data, dark = get_data(subject, view), is_dark()
    if isinstance(view, Document):
        figure: Any = InFrame(f"{key}-frame", view.document(data, dark=dark))
    else:
        made = view.figure(data, dark=dark)
        figure = papered(made, dark=dark, width=made.layout.width or width)  # type: ignore[attr-defined]
    return Export(
        file_name(view, subject),
        figure,
        view.tables(data),
        program(view, subject),
        note=getattr(view, "note", ""),
        source=source(view),
    )


def _held(key: str, shown: object, run: Callable[[], Iterable[Check]]) -> Callable[[], tuple[Check, ...]]:
    """The checks, run once while their badge stays open on what is shown: the same data, or the same live view."""
    place = f"{key}-found"
    if not st.session_state.get(key):
        st.session_state.pop(place, None)

    def found() -> tuple[Check, ...]:
        held = st.session_state.get(place)
        same = held is not None and (held[0] == shown if isinstance(shown, tuple) else held[0] is shown)
        if not same:
            held = st.session_state[place] = shown, tuple(run())
        return held[1]

    return found
