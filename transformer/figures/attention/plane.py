"""A query with keys, and values with their weighted mean, as points of two planes side by side."""

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.lines import line, points

REACH = 3.0
"""The planes reach from minus this to this."""
_TITLES = ("query and keys", "values and output")


def plane_figure(
    query: Float[ndarray, "2"],
    keys: Float[ndarray, "key 2"],
    values: Float[ndarray, "key 2"],
    weights: Float[ndarray, " key"],
    output: Float[ndarray, "2"],
    *,
    hull: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draws both planes; a key and its value share a colour, and the lines to values are as thick as their weights.

    `hull` draws the polygon of the values, too.
    """
    palette, colours = theme.palette(dark), [theme.run_colour(i + 1, dark) for i in range(len(keys))]
    names = [chr(ord("A") + i) for i in range(len(keys))]
    traces = [_arrow(query, palette.text, "q", "")]
    for name, colour, key, value, weight in zip(names, colours, keys, values, weights, strict=True):
        traces.append(_arrow(key, colour, name, ""))
        ends = np.stack((output, value))
        traces.append(line(*ends.T, colour, width=1 + 9 * float(weight), showlegend=False, hoverinfo="skip") | _SECOND)
        said = f"{name}: weight {weight:.3g}"
        traces.append(_spot(value, colour, f"{name} {weight:.2f}", said) | _SECOND)
    if hull:
        edge = np.concatenate((values, values[:1]))
        traces.append(line(*edge.T, palette.quiet, width=1, dash="dash", showlegend=False, hoverinfo="skip") | _SECOND)
    traces.append(_spot(output, palette.text, "output", f"output ({output[0]:.3g}, {output[1]:.3g})") | _SECOND)
    axis = {"range": [-REACH, REACH], "zeroline": True, "zerolinecolor": palette.line, "gridcolor": palette.line}
    square = {"scaleratio": 1, "constrain": "domain"}
    return theme.figure(
        traces,
        dark,
        height=380,
        showlegend=False,
        xaxis=axis | {"domain": [0, 0.47], "title": _TITLES[0]},
        yaxis=axis | square | {"scaleanchor": "x"},
        xaxis2=axis | {"domain": [0.53, 1], "title": _TITLES[1], "anchor": "y2"},
        yaxis2=axis | square | {"scaleanchor": "x2", "anchor": "x2"},
    )


_SECOND = {"xaxis": "x2", "yaxis": "y2"}


def _arrow(end: Float[ndarray, "2"], colour: str, name: str, said: str) -> dict:
    """Returns the trace of a line from the origin with its end marked and named."""
    ends = np.stack((np.zeros(2), end))
    place = f"{said or name} ({end[0]:.3g}, {end[1]:.3g})"
    marks = {"marker": {"color": colour, "size": [0, 11]}, "textfont": {"color": colour}}
    texts = {"mode": "lines+markers+text", "text": ["", name], "textposition": "top center"}
    return line(*ends.T, colour, showlegend=False, **texts, **marks, hovertemplate=f"{place}<extra></extra>")


def _spot(place: Float[ndarray, "2"], colour: str, name: str, said: str) -> dict:
    marks = {"marker": {"color": colour, "size": 12}, "textfont": {"color": colour}}
    return points(place[:1], place[1:], [said], mode="markers+text", text=[name], textposition="top center", **marks)
