"""Numbers on canvases, each exact on hover and by keyboard: tables on one scale around 0, and curves over one axis.

A plotly heatmap of 512 x 512 is remounted at each change and takes longer to draw than its numbers take to compute.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray

from pages.shared.components.frontend import declared, packed_arrays, run_colours, scale_colours
from transformer.figures import theme

_tables = declared(
    "value_tables",
    css=("value_axes.css", "matrices.css", "value_tables.css"),
    js=("scales.js", "value_axes.js", "value_tables.js", "value_tables_picture.js"),
)
_curves = declared(
    "value_curves",
    html="<div class='root' tabindex='0' role='img'></div>\n",
    css=("value_axes.css", "value_curves.css"),
    js=("scales.js", "value_axes.js", "value_curves.js"),
)


@dataclass(frozen=True)
class Panel:
    """One table and its title."""

    values: Float[ndarray, "row column"]
    """NaN is left empty."""
    title: str
    untrained_from: int | None = None
    """The first row that training never reached; a dotted line stands above it."""


@dataclass(frozen=True)
class ValueCurve:
    """One line; it has gaps where its values are NaN or, on a logarithmic axis, not above 0."""

    name: str
    x: Shaped[ndarray, " point"]
    y: Float[ndarray, " point"]
    low: Float[ndarray, " point"] | None = None
    high: Float[ndarray, " point"] | None = None
    """A band from low to high."""


def value_tables(
    panels: Sequence[Panel],
    *,
    axes: tuple[str, str] = ("dimension", "position"),
    quantity: str = "value",
    square: bool = False,
    key: str,
) -> None:
    """Draws the tables side by side; `axes` names columns and rows, `square` draws each in a square."""
    values = [panel.values for panel in panels]
    reach = max((float(np.nan_to_num(np.abs(table)).max(initial=0.0)) for table in values), default=0.0) or 1.0
    header = {
        "panels": [{"title": panel.title, "untrained_from": _line(panel)} for panel in panels],
        "axes": list(axes),
        "quantity": quantity,
        "square": square,
        "reach": reach,
        "scales": scale_colours(theme.diverging),
    }
    _tables(key=key, data=packed_arrays(header, values))


def value_curves(
    curves: Sequence[ValueCurve], *, axes: tuple[str, str], log: bool = False, marks: bool = False, key: str
) -> None:
    """Draws the curves; `axes` names x and y, `marks` sets a dot at each point."""
    series, arrays = [], []
    for index, curve in enumerate(curves):
        band = [] if curve.low is None or curve.high is None else [curve.low, curve.high]
        series.append({"name": curve.name, "colours": run_colours(index), "banded": bool(band)})
        arrays += [np.asarray(curve.x), curve.y, *band]
    header = {"series": series, "axes": list(axes), "log": log, "marks": marks}
    _curves(key=key, data=packed_arrays(header, arrays))


def _line(panel: Panel) -> int | None:
    row = panel.untrained_from
    return row if row is not None and row < len(panel.values) else None
