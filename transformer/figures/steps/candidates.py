"""One step of decoding as horizontal bars: the candidates, and the attention of the step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, exact, hover_label, label_width
from transformer.model.kinds import KindName

_ROW, _TOP, _LEAST_ROW, _MANY = 24, 44, 14, 20
"""Pixels: a bar with its share of the gap; above the bars; the smallest bar, where there are more than so many."""
_LEAST = 1e-9
"""Where a logarithmic axis ends at the latest."""


def candidate_bars(
    tokens: Sequence[str],
    probabilities: Sequence[float],
    *,
    written: int | None,
    reference: int | None = None,
    before: Sequence[float] | None = None,
    logarithmic: bool = False,
    dark: bool = False,
    before_name: str = "without the switches",
) -> go.Figure:
    """Draws a bar for each candidate, the most probable on top; `written` and `reference` are rows.

    `before`: the same tokens' probabilities in another state (`before_name`), as marks. A clicked bar's y is its row.
    """
    if len(tokens) != len(probabilities) or (before is not None and len(before) != len(tokens)):
        raise ValueError(f"{len(tokens)} tokens need as many probabilities")
    colours = theme.palette(dark)
    rows = list(range(len(tokens)))
    low = _floor([*probabilities, *(before or ())]) if logarithmic else 0.0
    notes = [_digits(p) + " ref" * (row == reference) for row, p in zip(rows, probabilities, strict=True)]
    inks = [colours.accent if row == written else colours.text for row in rows]
    hovers = [f"<b>{hover_label(t)}</b><br>probability {p!r}" for t, p in zip(tokens, probabilities, strict=True)]
    bars = _bars([max(p, low) for p in probabilities], notes, hovers, inks) | {
        "marker": {"color": [colours.accent if row == written else colours.faint for row in rows]},
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }
    marks = [] if before is None else [_marks([max(p, low) for p in before], before, before_name, colours)]
    # The space on the right is for the numbers beside the longest bar.
    span = (float(np.log10(low)), 0.0) if logarithmic else (0.0, 1.0)
    if logarithmic:
        powers = range(round(span[0]), 1, 1 if span[0] >= -4 else 2)
        axis: dict[str, Any] = {"type": "log", "exponentformat": "power", "tickvals": [10.0**power for power in powers]}
    else:
        axis = {"tickvals": [0, 0.5, 1]}
    axis["range"] = [span[0], span[1] + 0.45 * (span[1] - span[0])]
    axis["title"] = {"text": "probability, logarithmic" if logarithmic else "probability", "standoff": 6}
    return _figure([bars, *marks], tokens, axis, dark)


def row_bars(
    weights: Float[ndarray, "key"],
    keys: Sequence[str],
    *,
    kind: KindName,
    before: Float[ndarray, "key"] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws one query's weights over its keys, in their order; hovering gives the exact float32.

    `before`: the same weights without the switches, as marks.
    """
    if len(weights) != len(keys) or (before is not None and len(before) != len(keys)):
        raise ValueError(f"{len(keys)} keys do not fit {len(weights)} weights")
    colours = theme.palette(dark)
    notes = [f"{w:.2f}" if w >= 0.005 else "" for w in weights.tolist()]
    hovers = [f"<b>{hover_label(k)}</b><br>weight {exact(w)}" for k, w in zip(keys, weights, strict=True)]
    bars = _bars(weights, notes, hovers, colours.text) | {"marker": {"color": theme.kind_colour(kind, dark)}}
    marks = [] if before is None else [_marks(before, list(map(exact, before)), "without the switches", colours)]
    axis = {"range": [0, 1.35], "tickvals": [0, 0.5, 1], "title": {"text": "weight", "standoff": 6}}
    return _figure([bars, *marks], keys, axis, dark)


def _bars(x: Any, notes: Sequence[str], hovers: Sequence[str], inks: Any) -> dict[str, Any]:
    return {
        "type": "bar", "orientation": "h", "x": x, "y": np.arange(len(x)), "text": notes, "textposition": "outside",
        "textfont": {"size": 12, "color": inks}, "cliponaxis": False, "customdata": hovers,
        "hovertemplate": "%{customdata}<extra></extra>", "showlegend": False,
    }  # fmt: skip


def _marks(x: Any, values: Sequence[object], name: str, colours: theme.Palette) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "x": x, "y": np.arange(len(x)),
        "marker": {"symbol": "line-ns-open", "size": 16, "line": {"width": 2}, "color": colours.text},
        "customdata": [f"{name}: {value}" for value in values],
        "hovertemplate": "%{customdata}<extra></extra>", "showlegend": False,
    }  # fmt: skip


def _figure(traces: Sequence[dict[str, Any]], labels: Sequence[str], axis: dict[str, Any], dark: bool) -> go.Figure:
    """The figure, made in one go: each change of one that is there already costs milliseconds."""
    colours = theme.palette(dark)
    row = _ROW if len(labels) <= _MANY else max(_LEAST_ROW, _ROW * _MANY / len(labels))
    left = label_width(labels) * 13 * 0.6 + 20
    grid = {
        "showgrid": True, "gridcolor": colours.line, "showline": False, "ticks": "", "side": "top",
        "tickfont": {"size": 12}, "fixedrange": True,
    }  # fmt: skip
    rows = {
        "tickvals": list(range(len(labels))),
        "ticktext": axis_labels(labels, quiet=colours.quiet, faint=colours.faint),
        "tickfont": {"size": min(13, round(0.8 * row)), "family": theme.MONOSPACE},
        "range": [len(labels) - 0.5, -0.5],
        "showline": False,
        "ticks": "",
        "ticklabelstandoff": 5,
        "fixedrange": True,
    }
    layout = {
        "xaxis": grid | axis,
        "yaxis": rows,
        "height": round(_TOP + 24 + max(len(labels), 2) * row),
        "margin": {"l": left, "r": 8, "t": _TOP + 12, "b": 8, "autoexpand": False},
        "bargap": 0.3,
        "dragmode": False,
        "meta": {"smallest_width": round(left + 120)},
    }
    return theme.apply(go.Figure(data=list(traces), layout=layout), dark)


def _floor(probabilities: Sequence[float]) -> float:
    smallest = min((p for p in probabilities if p > 0), default=0.1)
    return 10.0 ** np.floor(np.log10(min(max(smallest, _LEAST), 0.1)))


def _digits(p: float) -> str:
    return f"{p:#.3g}" if p >= 1e-4 else f"{p:.0e}".replace("e-0", "e−").replace("e-", "e−") if p else "0"
