"""The export of a figure: PNG, SVG or one HTML file, its numbers, the lines of Python that make it, and a link."""

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from pandas import DataFrame

from pages.shared import wording
from pages.shared.components.frontend import declared
from pages.shared.context import is_dark
from pages.shared.registry import REOPENABLE
from pages.shared.saved.opening import open_saved
from pages.shared.texts.catalogue import Texts
from pages.shared.texts.figure_words import in_language
from pages.shared.url.address import link_shown, page_shown, parameters_shown
from pages.shared.url.packed_link import LONGEST, as_file
from transformer.figures.export import html_document
from transformer.figures.tables import as_csv, as_npz
from transformer.reports.report import drawn
from transformer.views.view import Subject, View, file_name, program, source, title_of

TEXTS = Texts("figure.files")
_save_chart = declared("save_chart", css=("save_chart.css",), js=("save_chart.js",))
_save_drawing = declared("save_drawing", css=("save_chart.css",), js=("save_drawing.js",))

WIDTH = 640
"""Pixels of the panel; a figure of no width of its own is saved as wide."""
_NAMED = 4


@dataclass(frozen=True)
class Saved:
    """The files of one figure."""

    name: str
    """The name of its files, without an ending."""
    title: str
    """The heading of the HTML file."""
    figure: go.Figure | str
    """The figure on paper, or the HTML page of a drawing that stands on the page in a frame of its own."""
    tables: tuple[DataFrame, ...]


def export(
    subject: Subject,
    views: Mapping[str, View[Any]],
    data_of: Callable[[View[Any]], Any],
    *,
    key: str,
    caption: str,
    width: int,
) -> None:
    """Renders a figure's files, its lines of Python and a link.

    `views` are named; with several, one is chosen. `key` is that of the figure,
    `caption` stands under it in the HTML file, and `width` is that of a figure which has none of its own.
    """
    frame, key = f"{key}-frame", f"{key}-export"
    with st.container(width=WIDTH):
        view = _choose_view(views, key)
        data = data_of(view)
        figure = drawn(view, data, width=width, dark=is_dark())
        if isinstance(figure, go.Figure):
            figure = in_language(figure)
        saved = Saved(file_name(view, subject), title_of(view), figure, view.tables(data))
        offer_files(saved, caption, key, frame)
        note = getattr(view, "note", "")
        st.caption(f"{TEXTS('python')} · {note}" if note else TEXTS("python"))
        st.code(program(view, subject), language="python", wrap_lines=True)
        with st.expander(TEXTS("how")):
            st.code(source(view), language="python", wrap_lines=True)
        page = page_shown()
        _link(page, key)
        if page in REOPENABLE:
            with st.expander(TEXTS("open")):
                open_saved(key)


def _choose_view(views: Mapping[str, View[Any]], key: str) -> View[Any]:
    """Returns the only view, or the one chosen by its name."""
    names = list(views)
    if len(names) == 1:
        return views[names[0]]
    chosen = st.segmented_control(
        TEXTS("which"), names, default=names[0], required=True, key=f"{key}-which", label_visibility="collapsed"
    )
    return views[chosen or names[0]]


def offer_files(saved: Saved, caption: str, key: str, frame: str) -> None:
    """Renders the buttons that save a figure and its numbers; `frame` is the key of a drawing's container."""
    name, figure = saved.name, saved.figure
    if isinstance(figure, str):
        buttons, drawing = _save_drawing, {"frame": frame}
        document = partial(_with_caption, figure, caption)
    else:
        buttons, drawing = _save_chart, {"chart": _sheet(figure, key)}
        document = partial(html_document, figure, title=name, heading=saved.title, said=caption, dark=is_dark())
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        buttons(key=f"{key}-save", data={**drawing, "name": name})
        _download("HTML", document, name, "html", key)
        _download("CSV", lambda: as_csv(saved.tables), name, "csv", key)
        _download("NPZ", lambda: as_npz(saved.tables), name, "npz", key)
    shapes = [f"{table.index.name} {' × '.join(map(str, table.shape))}" for table in saved.tables]
    held = ", ".join(shapes) if len(shapes) <= _NAMED else TEXTS("tables", total=len(shapes), first=shapes[0])
    form = TEXTS("drawing" if isinstance(figure, str) else "chart")
    st.caption(f"{form} {TEXTS('held', tables=wording.plain(held))}")


def _with_caption(document: str, caption: str) -> str:
    drawing, _, end = document.rpartition("</body>")
    return f"{drawing}<p>{html.escape(caption)}</p></body>{end}"


def _sheet(figure: go.Figure, key: str) -> str:
    """Draws the figure to be saved; returns its key."""
    chart, width = f"{key}-chart", figure.layout.width or 0  # type: ignore[attr-defined]
    with st.container(key=f"{key}-sheet"):
        st.html(
            f"<style>.st-key-{key}-sheet {{max-height: 20rem; overflow: auto}} .st-key-{key}-sheet > * "
            f"{{min-width: {width}px}} .st-key-{key}-sheet .modebar {{opacity: 0; pointer-events: none}}</style>"
        )
        bar = {"displayModeBar": True, "displaylogo": False, "modeBarButtons": [["toImage"]]}
        st.plotly_chart(figure, key=chart, theme=None, width="content", config=bar)
    return chart


_MIMES = {"html": "text/html", "csv": "text/csv", "npz": "application/octet-stream"}


def _download(label: str, make: Callable[[], str | bytes], name: str, end: str, key: str) -> None:
    st.download_button(label, make, file_name=f"{name}.{end}", mime=_MIMES[end], key=f"{key}-{end}", on_click="ignore")


def _link(page: str, key: str) -> None:
    if (link := link_shown(page)) is not None:
        st.caption(TEXTS("link"))
        st.code(link, language=None, wrap_lines=True)
        return
    st.caption(TEXTS("too_long", most=LONGEST))
    st.download_button(
        TEXTS("save"),
        partial(as_file, page, parameters_shown(page)),
        file_name=f"{page}-view.json",
        mime="application/json",
        key=f"{key}-view",
        on_click="ignore",
    )
