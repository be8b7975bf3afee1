"""The table of runs and shipped models: a tick for each curve to compare, a name to select one."""

from collections.abc import Sequence
from dataclasses import dataclass

from pages.shared.components.frontend import declared, run_colours

Column = tuple[str, bool]
"""A title, and True if the cells beneath it hold numbers."""

_component = declared(
    "run_table", css=("tables.css", "run_table.css"), js=("run_table.js",), reports=("ticked", "chosen")
)


@dataclass(frozen=True)
class Picks:
    """The clicks of this rerun."""

    ticked: tuple[str, bool] | None = None
    """A row, and True if its curve is wanted."""
    chosen: str | None = None
    """The selected row."""


def run_table(
    rows: Sequence[tuple[str, Sequence[str]]],
    columns: Sequence[Column],
    *,
    shown: Sequence[str],
    chosen: str,
    key: str,
) -> Picks:
    """Draws each row's cells; the first one is the button that selects it.

    The ticks of `shown` have the colours of their curves, in that order.
    """
    colours = {name: run_colours(i) for i, name in enumerate(shown)}
    state = _component(
        key=key,
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
