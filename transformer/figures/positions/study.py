"""The paired study of positions as figures: how each kind learned, and how it does beyond its trained lengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import level
from transformer.figures.labels import hover_label
from transformer.figures.lines import band, line
from transformer.figures.theme import run_colour

_DASHES = ("solid", "dash", "solid", "dot", "dashdot", "solid")


@dataclass(frozen=True)
class Learning:
    """One run's exact match over its steps, with the name and seed of its line."""

    name: str
    seed: int
    step: Int[ndarray, " point"]
    exact_match: Float[ndarray, " point"]
    """0..1."""


@dataclass(frozen=True)
class ByLength:
    """Exact match of one kind at each length, with its interval; a length with a count of 0 was refused."""

    name: str
    length: Int[ndarray, " length"]
    right: Int[ndarray, " length"]
    count: Int[ndarray, " length"]
    low: Float[ndarray, " length"]
    high: Float[ndarray, " length"]


def learning_figure(
    curves: Sequence[Learning], names: Sequence[str], *, budget: int, target: float, dark: bool = False
) -> go.Figure:
    """Draws a line for each run, in one colour for all seeds of a name; the target is dotted."""
    traces = []
    named: set[str] = set()
    for curve in curves:
        says = f"{hover_label(curve.name)}, seed {curve.seed}<br>step %{{x:,}}: %{{y:.1f}} %<extra></extra>"
        look = {**_look(curve.name, names, dark), "width": 1.75, "showlegend": curve.name not in named}
        traces.append(line(curve.step, 100 * curve.exact_match, hovertemplate=says, **look))
        named.add(curve.name)
    dotted = level(100 * target, theme.palette(dark).quiet, dash="dot")
    across = {"title": {"text": "step"}, "range": [0, budget * 1.01]}
    return _figure(traces, "validation exact match, %", across, [dotted], dark=dark)


def lengths_figure(
    curves: Sequence[ByLength], names: Sequence[str], *, trained_to: int, dark: bool = False
) -> go.Figure:
    """Draws a line for each kind with the band of its interval; the lengths of training are shaded."""
    traces = []
    for curve in curves:
        answered = curve.count > 0
        length, right, count = curve.length[answered], curve.right[answered], curve.count[answered]
        low, high = 100 * curve.low[answered], 100 * curve.high[answered]
        look = _look(curve.name, names, dark)
        says = (
            f"{hover_label(curve.name)}, %{{x}} symbols<br>%{{customdata[0]:,.0f}} of "
            "%{customdata[1]:,.0f} right: %{y:.1f} %<br>95 %: %{customdata[2]:.1f} to %{customdata[3]:.1f} %"
            "<extra></extra>"
        )
        numbers = np.stack((right, count, low, high), axis=1)
        drawn = line(length, 100 * right / count, hovertemplate=says, customdata=numbers, **look)
        traces += [
            band(length, low, high, look["colour"], legendgroup=curve.name),
            drawn | {"mode": "lines+markers"},
        ]
    colours = theme.palette(dark)
    shaded = {
        "type": "rect", "x0": 0.5, "x1": trained_to + 0.5, "y0": 0, "y1": 1, "yref": "y domain", "layer": "below",
        "fillcolor": colours.line, "opacity": 0.35, "line": {"width": 0},
    }  # fmt: skip
    said = {"text": "lengths of training", "x": trained_to + 0.35, "y": 60, "xanchor": "right", "yanchor": "middle"}
    longest = max((int(curve.length.max()) for curve in curves if len(curve.length)), default=trained_to)
    across = {"title": {"text": "length of the sentence, symbols"}, "range": [0.5, longest + 0.5]}
    return _figure(traces, "exact match, %", across, [shaded], annotations=[said], dark=dark)


def verdict_figure(
    names: Sequence[str], columns: Mapping[str, Float[ndarray, "kind 3"]], *, dark: bool = False
) -> go.Figure:
    """Draws a point with its range for each kind, in a colour for each column: middle, low and high, 0..1."""
    points = []
    for index, (title, values) in enumerate(columns.items()):
        middle, low, high = 100 * values.T
        points.append(
            {
                "type": "scatter", "mode": "markers", "x": list(names), "y": middle, "name": hover_label(title),
                "error_y": {"array": high - middle, "arrayminus": middle - low, "width": 6},
                "marker": {"color": run_colour(index, dark), "size": 9},
                "hovertemplate": f"%{{x}}, {hover_label(title)}: %{{y:.1f}} %<extra></extra>",
            }
        )  # fmt: skip
    return _figure(points, "exact match, %", {}, dark=dark)


def _look(name: str, names: Sequence[str], dark: bool) -> dict[str, Any]:
    """Returns the name, colour, dash and group of the lines with this name."""
    index = names.index(name)
    look = {"colour": run_colour(index, dark), "dash": _DASHES[index % len(_DASHES)]}
    return {"name": name, "legendgroup": name, **look}


def _figure(
    traces: Sequence[dict[str, Any]],
    title: str,
    across: dict[str, Any],
    shapes: Sequence[dict[str, Any]] = (),
    *,
    dark: bool,
    **layout: Any,
) -> go.Figure:
    """Draws the traces over an axis from 0 to 100 %."""
    shares = {"title": {"text": title}, "range": [-3, 103], "tickvals": [0, 25, 50, 75, 100], "showgrid": True}
    return theme.figure(
        traces,
        dark,
        xaxis={"showline": True, "automargin": True} | across,
        yaxis=shares | {"automargin": True},
        shapes=shapes,
        height=380,
        hovermode="closest",
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        **layout,
    )
