"""The table of runs and shipped models: a tick for each curve to lay over the others, a name to take one in hand."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of
from transformer.figures.theme import run_colour

Column = tuple[str, bool]
"""A title, and whether the cells beneath it hold numbers."""

_component = component(
    "attention_lab_run_table",
    html="<div class='root'></div>\n",
    css=text_of("tables.css", "run_table.css"),
    js=text_of("run_table.js"),
)


@dataclass(frozen=True)
class Picks:
    """The clicks of this rerun."""

    ticked: tuple[str, bool] | None = None
    """A row and whether its curve is wanted."""
    chosen: str | None = None
    """The row taken in hand."""


def run_table(
    rows: Sequence[tuple[str, Sequence[str]]],
    columns: Sequence[Column],
    *,
    shown: Sequence[str],
    chosen: str,
    key: str,
) -> Picks:
    """Draws each row's cells; the first one is the button that takes it in hand.

    The ticks of `shown` have the colours of their curves, in that order.
    """
    colours = {name: {"light": run_colour(i), "dark": run_colour(i, dark=True)} for i, name in enumerate(shown)}
    state = _component(
        key=key,
        on_ticked_change=lambda: None,
        on_chosen_change=lambda: None,
        data={
            "columns": [{"title": title, "number": number} for title, number in columns],
            "rows": [
                {
                    "id": name,
                    "cells": list(cells),
                    "shown": name in colours,
                    "chosen": name == chosen,
                    "colour": colours.get(name),
                }
                for name, cells in rows
            ],
        },
    )
    names = {name for name, _ in rows}
    ticked, picked = state.get("ticked"), state.get("chosen")
    if not (isinstance(ticked, list) and len(ticked) == 2 and ticked[0] in names):
        ticked = None
    return Picks(
        ticked=None if ticked is None else (ticked[0], bool(ticked[1])),
        chosen=picked if isinstance(picked, str) and picked in names else None,
    )
