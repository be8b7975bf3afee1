"""The table of runs and shipped models: a tick for each curve to lay over the others, a name to take one in hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.common.components.frontend import text_of
from transformer.figures.curves import run_colour

COLUMNS = (
    *(("run", False), ("corpus", False), ("state", False), ("step", True), ("exact match, %", True)),
    *(("validation loss", True), ("parameters", True), ("positions", False), ("time", True), ("created (UTC)", False)),
)
"""The title of each column, and whether it holds numbers."""

_component = st.components.v2.component(
    "attention_lab_run_table",
    html="<div class='root'></div>\n",
    css=text_of("run_table.css"),
    js=text_of("run_table.js"),
)


@dataclass(frozen=True)
class Picks:
    """What was clicked in this very rerun."""

    ticked: tuple[str, bool] | None = None
    """A row and whether its curve is wanted."""
    chosen: str | None = None
    """The row taken in hand."""


def run_table(rows: Sequence[tuple[str, Sequence[str]]], *, shown: Sequence[str], chosen: str, key: str) -> Picks:
    """Draws each row's cells under COLUMNS; the ticks of `shown` have the colours of their curves, in that order."""
    colours = {name: {"light": run_colour(i), "dark": run_colour(i, dark=True)} for i, name in enumerate(shown)}
    state = _component(
        key=key,
        on_ticked_change=lambda: None,
        on_chosen_change=lambda: None,
        data={
            "columns": [{"title": title, "number": number} for title, number in COLUMNS],
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
    well_formed = isinstance(ticked, list) and len(ticked) == 2 and ticked[0] in names
    return Picks(
        ticked=(ticked[0], bool(ticked[1])) if well_formed else None,
        chosen=picked if isinstance(picked, str) and picked in names else None,
    )
