"""Tables of signed numbers side by side on canvases, on one scale around 0, each value exact on hover and by keyboard.

A plotly heatmap of 512 x 512 is remounted at each change and takes longer to draw than its numbers take to compute.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of
from pages.shared.components.packed_arrays import packed_arrays
from transformer.figures import theme

_component = component(
    "attention_lab_value_tables",
    html="<div class='root'></div>\n",
    css=text_of("value_axes.css", "matrices.css", "value_tables.css"),
    js=text_of("scales.js", "value_axes.js", "value_tables.js", "value_tables_picture.js"),
)


@dataclass(frozen=True)
class Panel:
    """One table and what stands above it."""

    values: Float[ndarray, "row column"]
    """NaN is left empty."""
    title: str
    untrained_from: int | None = None
    """The first row that training never reached; a dotted line stands above it."""


def value_tables(
    panels: Sequence[Panel],
    *,
    axes: tuple[str, str] = ("dimension", "position"),
    quantity: str = "value",
    square: bool = False,
    key: str,
) -> None:
    """Draws the tables; `axes` names columns and rows, `square` draws each in a square."""
    values = [panel.values for panel in panels]
    reach = max((float(np.nan_to_num(np.abs(table)).max(initial=0.0)) for table in values), default=0.0) or 1.0
    header = {
        "panels": [{"title": panel.title, "untrained_from": _line(panel)} for panel in panels],
        "axes": list(axes),
        "quantity": quantity,
        "square": square,
        "reach": reach,
        "scales": {name: [colour for _, colour in theme.diverging(name == "dark")] for name in ("light", "dark")},
    }
    _component(key=key, data=packed_arrays(header, values))


def _line(panel: Panel) -> int | None:
    row = panel.untrained_from
    return row if row is not None and row < len(panel.values) else None
