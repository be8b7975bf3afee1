"""A figure as pages show it: the picture, and at its corner one menu with its checks, its export, its explanation."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from pages.shared import wording
from pages.shared.cache import cached
from pages.shared.context import is_dark, say, sentence
from pages.shared.explain import explain as explained_text
from pages.shared.exports import export
from pages.shared.fields import popover
from pages.shared.guard import guard
from pages.shared.saved.shown import ShownFigure, remember
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.texts.catalogue import Texts
from pages.shared.texts.phrases import Phrases
from pages.shared.url.session import session
from transformer.analysis.checks import Check
from transformer.checkpoints.settings import CheckpointError
from transformer.data.unpacking import CorpusError
from transformer.runs.status import RunError
from transformer.views.view import Document, Subject, View, data_options

D = TypeVar("D")

CANNOT_SHOW = (ValueError, CheckpointError, CorpusError, RunError)
"""The errors of `data` when there is nothing to show; the message is said instead."""

TEXTS = Texts("figure")
CHECKS, EXPLAINED = Phrases("library.checks"), Phrases("library.explained")
MENU, PROVE, EXPORT, EXPLAIN = TEXTS("menu"), TEXTS("prove"), TEXTS("export"), TEXTS("explain")
"""The label of a figure's menu, and those of its entries."""
_TEXT_WIDTH = 520


def exhibit(
    subject: Subject,
    view: View[D],
    *,
    key: str = "",
    data: D | None = None,
    draw: Callable[[D], object] | None = None,
    also: Mapping[str, View[Any]] | None = None,
    said: str = "",
    note: str = "",
    explain: Callable[[], object] | None = None,
    width: int = 900,
    live: bool = False,
) -> D | None:
    """Draws a view of a subject and its menu; returns its data, for sentences, or None where there is nothing to show,
    which it says.

    `key` tells apart two views of one class on a page. `data` is the view's data where the page has it already. `draw`
    draws it in place of the view's figure, which then is what the export holds. `also` are views of the same subject
    that its export offers too, by their names. `said` stands in the saved file, `note` beside the menu. `explain`
    renders what the visitor is looking at, for the menu, where that depends on the page: else the view itself says it.
    `width` is that of a saved figure which has none of its own. `live` data changes all the time, as that of a run at
    work: it is not remembered, and open checks keep what they found.
    """
    given = vars(subject).values()
    with guard("This figure"):
        try:
            if data is None:
                data = view.data(*given) if live else get_data(subject, view)
        except CANNOT_SHOW as error:
            say(sentence(str(error)))
            return None
        own = key_of(view, key)
        caption = " · ".join(filter(None, (subject.origin.caption, said)))
        remember(ShownFigure(own, subject, view, data, caption, width))
        _draw(view, data, own, draw)
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            if note:
                st.caption(note, width="content")
            shown = (view, subject) if live else data
            prove = partial(_prove, own, shown, partial(view.checks, *given, data))
            views = {TEXTS("this"): view, **(also or {})}
            take = partial(export, subject, views, partial(get_data, subject), key=own, caption=caption, width=width)
            told = explain or _explanation(view)
            _menu({PROVE: prove, EXPORT: take, **({EXPLAIN: partial(_explain, told)} if told else {})}, key=own)
        return data
    return None


def _data_key(subject: Subject, view: View[Any]) -> tuple[Any, ...]:
    kind = type(view)
    return kind.__module__, kind.__qualname__, data_options(view), *vars(subject).values()


@cached(max_entries=64, shared=True, also=_data_key)
def get_data(_subject: Subject, _view: View[D]) -> D:
    """Returns the view's data of a subject, cached for all visitors; raises CANNOT_SHOW as `view.data` does."""
    return _view.data(*vars(_subject).values())


def key_of(view: View[Any], key: str = "") -> str:
    """Returns the key of a view's chart, with which those of its other elements begin: its class and `key`."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(view).__name__).lower()
    return f"{name}-{key}" if key else name


def _draw(view: View[D], data: D, key: str, draw: Callable[[D], object] | None) -> None:
    if draw is not None:
        draw(data)
    elif isinstance(view, Document):
        with st.container(key=f"{key}-frame"):
            st.iframe(view.document(data, dark=is_dark()), height=view.height(data))
    else:
        scrolling_figure(view.figure(data, dark=is_dark()), key=key)


def _menu(entries: Mapping[str, Callable[[], object]], *, key: str) -> None:
    """Renders a quiet button; opened, it offers the entries, of which only the chosen one is run."""
    opened, chosen = f"{key}-menu", f"{key}-about"
    if session().arrived:  # by a saved view of this very page: it lies under the popover
        st.session_state[opened] = False
    if not (st.session_state.get(opened) and st.session_state.get(chosen) == PROVE):
        st.session_state.pop(_found(key), None)

    def render() -> None:
        with st.container(key=f"{key}-about-figure"):
            entry = st.segmented_control(MENU, list(entries), key=chosen, label_visibility="collapsed")
            if entry is not None:
                with guard(f"“{entry}”"):
                    entries[entry]()

    popover(MENU, render, key=opened, icon=":material/more_horiz:", quiet=True)


def _prove(key: str, shown: object, run: Callable[[], Iterable[Check]]) -> None:
    """Shows the deviations, failing ones in red; the checks run once while they stay open on the same data or view."""
    held = st.session_state.get(_found(key))
    if held is None or not (held[0] == shown if isinstance(shown, tuple) else held[0] is shown):
        held = st.session_state[_found(key)] = shown, tuple(run())
    with st.container(width=_TEXT_WIDTH):
        _render_checks(held[1])


def _explanation(view: View[Any]) -> Callable[[], object] | None:
    said = EXPLAINED(getattr(view, "explained", ""))
    return partial(explained_text, said, equation=getattr(view, "equation", "")) if said else None


def _explain(explain: Callable[[], object]) -> None:
    with st.container(width=_TEXT_WIDTH):
        explain()


def _found(key: str) -> str:
    """Returns the key of what a figure's checks found."""
    return f"{key}-found"


def _render_checks(checks: Sequence[Check]) -> None:
    failing = sum(not check.holds for check in checks)
    if failing:
        st.markdown(f":red[:material/error: **{TEXTS('checks.fail', failing=failing, total=len(checks))}**]")
    else:
        st.markdown(f":green[:material/verified: **{TEXTS('checks.hold', n=len(checks))}**]")
    for check in checks:
        icon = ":green[:material/check:]" if check.holds else ":red[:material/close:]"
        claim, how = wording.plain(CHECKS(check.claim)), "; ".join(map(CHECKS, check.how.split("; ")))
        claim = f"**{claim}.**" if check.holds else f":red[**{claim}.**]"
        how = wording.plain(f"{how[:1].upper()}{how[1:]}")
        measured, allowed = wording.number(check.measured), wording.number(check.tolerance)
        st.markdown(f"{icon} {claim} {how}: {TEXTS('checks.measured', measured=measured, allowed=allowed)}")
