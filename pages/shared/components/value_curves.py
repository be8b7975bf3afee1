"""Curves over one axis on a canvas, with bands and marks: drawn anew in place at each change."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray
from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of
from pages.shared.components.packed_arrays import packed_arrays
from transformer.figures.theme import run_colour

_component = component(
    "attention_lab_value_curves",
    html="<div class='root' tabindex='0' role='img'></div>\n",
    css=text_of("value_axes.css", "value_curves.css"),
    js=text_of("scales.js", "value_axes.js", "value_curves.js"),
)


@dataclass(frozen=True)
class ValueCurve:
    """One line; it has gaps where its values are NaN or, on a logarithmic axis, not above 0."""

    name: str
    x: Shaped[ndarray, "point"]
    y: Float[ndarray, "point"]
    low: Float[ndarray, "point"] | None = None
    high: Float[ndarray, "point"] | None = None
    """A band from low to high."""


def value_curves(
    curves: Sequence[ValueCurve], *, axes: tuple[str, str], log: bool = False, marks: bool = False, key: str
) -> None:
    """Draws the curves; `axes` names x and y, `marks` sets a dot at each point."""
    series, arrays = [], []
    for index, curve in enumerate(curves):
        banded = curve.low is not None and curve.high is not None
        colours = {"light": run_colour(index), "dark": run_colour(index, dark=True)}
        series.append({"name": curve.name, "colours": colours, "banded": banded})
        arrays += [np.asarray(curve.x), curve.y]
        if curve.low is not None and curve.high is not None:
            arrays += [curve.low, curve.high]
    header = {"series": series, "axes": list(axes), "log": log, "marks": marks}
    _component(key=key, data=packed_arrays(header, arrays))
