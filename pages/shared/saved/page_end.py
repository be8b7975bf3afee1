"""The end of every page: save it, make a report of it, open a saved one. No page knows of this."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from pages.shared.fields import popover
from pages.shared.guard import guard
from pages.shared.registry import PAGES
from pages.shared.saved.made import forget_made
from pages.shared.saved.opening import open_saved
from pages.shared.saved.reporting import render_reporting
from pages.shared.saved.saving import render_saving
from pages.shared.saved.shown import begin_page, figures_shown
from pages.shared.saved.verdict import fill_verdict, place_verdict
from pages.shared.texts.catalogue import Texts
from pages.shared.url.session import is_lesson

TEXTS = Texts("page_end")
SAVE, REPORT, OPEN = TEXTS("save"), TEXTS("report"), TEXTS("open")
_WIDTH = 520


@contextmanager
def saved_and_reported(title: str) -> Iterator[None]:
    """Draws the page of this title within it: what was opened from a file is judged above the page, and below it stands
    what saves and reports it."""
    entry = next(page for page in PAGES if page.title == title)
    page = entry.url
    begin_page()
    place = place_verdict(page)
    yield
    fill_verdict(place)
    if not (figures_shown() or entry.shows_a_sentence or is_lesson(entry)):
        return
    st.space("small")
    with st.container(horizontal=True, gap="small", key="page-end"):
        _popover("save", SAVE, ":material/save:", lambda: render_saving(page, title))
        if figures_shown():
            _popover("report", REPORT, ":material/description:", lambda: render_reporting(page, title))
        _popover("open", OPEN, ":material/folder_open:", lambda: open_saved("page-end"))
    if not any(st.session_state.get(_key(name)) for name in ("save", "report")):
        forget_made()


def _popover(name: str, label: str, icon: str, render: Callable[[], object]) -> None:
    def guarded() -> None:
        with st.container(width=_WIDTH, key=f"{_key(name)}-panel"), guard(f"“{label}”"):
            render()

    popover(label, guarded, key=_key(name), icon=icon, quiet=True)


def _key(name: str) -> str:
    return f"page-end-{name}"
