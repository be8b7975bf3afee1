"""The curves of a run at work: drawn anew in place each second, which Plotly (remounted each time) is too slow for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of
from transformer.figures.theme import run_colour
from transformer.figures.training.curves import Curve, Panel, thinned

_component = component(
    "attention_lab_run_curve",
    html="<div class='root'></div>\n",
    css=text_of("run_curve.css"),
    js=text_of("run_curve.js"),
)


def run_curve(panels: Sequence[Panel], *, x_title: str, x_least: float, key: str) -> None:
    """Draws the panels below each other over one x axis that reaches at least to `x_least`."""
    data = {"x_title": x_title, "x_least": x_least, "panels": [_described(panel) for panel in panels]}
    _component(key=key, data=data)


def _described(panel: Panel) -> dict[str, Any]:
    styled = [(curve, "thin") for curve in panel.thin] + [(curve, "main") for curve in panel.main]
    colours = [None] * len(panel.thin) + [
        {"light": run_colour(index), "dark": run_colour(index, dark=True)} if panel.overlay else None
        for index in range(len(panel.main))
    ]
    fixed = (0.0, 100.0) if panel.percent else panel.range
    return {
        "title": panel.title,
        "unit": " %" if panel.percent else "",
        "log": panel.log and fixed is None,
        "range": None if fixed is None else list(fixed),
        "height": panel.height,
        "series": [
            {"name": curve.name, "style": style, "colour": colour}
            | _points(drawn_curve(curve, 100 if panel.percent else 1))
            for (curve, style), colour in zip(styled, colours, strict=True)
        ],
    }


def drawn_curve(curve: Curve, factor: float) -> Curve:
    """The points that the browser gets of a curve: the finite ones of the thinned line, with four digits."""
    shown = thinned(curve)
    kept = np.isfinite(shown.y)  # JSON has no word for anything else
    return Curve(curve.name, shown.x[kept], np.array([float(f"{value * factor:.4g}") for value in shown.y[kept]]))


def _points(curve: Curve) -> dict[str, list[float]]:
    return {"x": curve.x.tolist(), "y": curve.y.tolist()}
