"""A table of heads with small bars: sorted by a click on a title; a head's name opens it on the Attention page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import streamlit as st

from pages.shared.components.frontend import colours_of, declared, reported
from transformer.model.kinds import KindName

_component = declared(
    "head_table", css=("tables.css", "head_table.css"), js=("head_table.js",), reports=("sorted", "picked")
)
Parameters = Mapping[str, str | list[str]]


@dataclass(frozen=True)
class Column:
    """A column after the names."""

    name: str
    title: str
    help: str = ""
    text: bool = False
    """The column holds words instead of numbers."""


@dataclass(frozen=True)
class Cell:
    """The content of one cell."""

    text: str
    value: float | None = None
    """The number by which it is sorted."""
    bar: float | None = None
    """The end of its bar, 0 to 1; None: it has none."""
    start: float = 0.0
    """The beginning of its bar."""
    mark: float | None = None
    """The place of a tick on the bar: the value of an even head."""
    quiet: bool = False
    note: str = ""
    """The text shown when the pointer rests on it."""


@dataclass(frozen=True)
class Row:
    """One head."""

    id: str
    """The identifier that is reported when the row is clicked."""
    name: str
    kind: KindName
    opens: Parameters
    """The query parameters with which it is opened."""
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Picks:
    """The clicks of this rerun."""

    sort: str | None = None
    """A column's name, with a minus where the largest comes first."""
    row: str | None = None
    """A row's id."""


def picks_of(key: str) -> Picks:
    """Returns what was just clicked in the table with this key; it reports in the run itself, not by a callback."""
    report = reported(key)
    sort, row = report.get("sorted"), report.get("picked")
    return Picks(sort if isinstance(sort, str) else None, row if isinstance(row, str) else None)


def head_table(rows: Sequence[Row], columns: Sequence[Column], *, sort: str, chosen: str, page: str, key: str) -> None:
    """Draws the table. A name is a link to `page` (as in "attention"): a click is passed on to one of Streamlit's page
    links, so that nothing is loaded anew; the address alone is enough to open it in another tab.
    """
    links = f"{key}-links"
    with st.container(key=links):
        st.html(f"<style>.st-key-{links} {{display: none}}</style>")
        for row in rows:
            st.page_link(f"pages/{page}/page.py", label=row.name, query_params=dict(row.opens))
    _component(
        key=key,
        data={
            "links": links,
            "sort": sort,
            "chosen": chosen,
            "columns": [
                {"name": column.name, "title": column.title, "help": column.help, "words": column.text}
                for column in columns
            ],
            "rows": [
                {
                    "id": row.id,
                    "name": row.name,
                    "colours": colours_of(row.kind),
                    "href": f"{page}?{urlencode(row.opens, doseq=True)}",
                    "cells": [None if cell is None else _described(cell) for cell in row.cells],
                }
                for row in rows
            ],
        },
    )


def _described(cell: Cell) -> dict[str, object]:
    return {
        "text": cell.text,
        "value": cell.value,
        "bar": None if cell.bar is None else round(min(1.0, max(0.0, cell.bar)), 4),
        "start": cell.start,
        "mark": None if cell.mark is None else round(cell.mark, 4),
        "quiet": cell.quiet,
        "note": cell.note,
    }
