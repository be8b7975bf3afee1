"""One step of decoding as horizontal bars: the candidates, and the attention of the step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import monospace, row_axis, token_labels
from transformer.figures.bars import bars, ticks
from transformer.figures.labels import exact, hover_label, label_width, typeset
from transformer.model.kinds import KindName

_ROW, _TOP, _SMALLEST_ROW, _MANY = 24, 44, 14, 20
"""Pixels of a bar with its gap, above the bars, and of the smallest bar; and the number of bars that shrink none."""
_FLOOR = 1e-9
"""The smallest probability on a logarithmic axis."""


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
    """Draws a bar for each candidate, the most probable on top; `written` and `reference` are row indices.

    `before`: the same tokens' probabilities in another state (`before_name`), as marks. A clicked bar's y is its row.
    """
    if len(tokens) != len(probabilities) or (before is not None and len(before) != len(tokens)):
        raise ValueError(f"{len(tokens)} tokens need as many probabilities")
    colours = theme.palette(dark)
    rows = list(range(len(tokens)))
    low = _floor([*probabilities, *(before or ())]) if logarithmic else 0.0
    numbers = [
        f"{_digits(p)} ref" if row == reference else _digits(p) for row, p in zip(rows, probabilities, strict=True)
    ]
    texts = [f"<b>{hover_label(t)}</b><br>probability {p!r}" for t, p in zip(tokens, probabilities, strict=True)]
    paints = [colours.accent if row == written else colours.faint for row in rows]
    inks = [colours.accent if row == written else colours.text for row in rows]
    ink = {"size": 12, "color": inks}
    plain = {"marker": {"opacity": 1}}
    lengths = [max(p, low) for p in probabilities]
    traces = [bars(lengths, texts, paints, numbers=numbers, textfont=ink, selected=plain, unselected=plain)]
    if before is not None:
        traces.append(ticks([max(p, low) for p in before], [f"{before_name}: {p}" for p in before], colours))
    # The space on the right is for the numbers beside the longest bar.
    first, last = (float(np.log10(low)), 0.0) if logarithmic else (0.0, 1.0)
    axis: dict[str, Any] = {"tickvals": [0, 0.5, 1], "title": {"text": "probability", "standoff": 6}}
    if logarithmic:
        powers = range(round(first), 1, 1 if first >= -4 else 2)
        axis = {"type": "log", "exponentformat": "power", "tickvals": [10.0**power for power in powers]}
        axis["title"] = {"text": "probability, logarithmic", "standoff": 6}
    axis["range"] = [first, last + 0.45 * (last - first)]
    return _figure(traces, tokens, axis, dark)


def row_bars(
    weights: Float[ndarray, " key"],
    keys: Sequence[str],
    *,
    kind: KindName,
    before: Float[ndarray, " key"] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws one query's weights over its keys, in their order; hovering gives the exact float32.

    `before`: the same weights without the switches, as marks.
    """
    if len(weights) != len(keys) or (before is not None and len(before) != len(keys)):
        raise ValueError(f"{len(keys)} keys do not fit {len(weights)} weights")
    colours = theme.palette(dark)
    numbers = [f"{w:.2f}" if w >= 0.005 else "" for w in weights.tolist()]
    texts = [f"<b>{hover_label(k)}</b><br>weight {exact(w)}" for k, w in zip(keys, weights, strict=True)]
    ink = {"size": 12, "color": colours.text}
    traces = [bars(weights, texts, theme.kind_colour(kind, dark), numbers=numbers, textfont=ink)]
    if before is not None:
        traces.append(ticks(before, [f"without the switches: {exact(w)}" for w in before], colours))
    axis = {"range": [0, 1.35], "tickvals": [0, 0.5, 1], "title": {"text": "weight", "standoff": 6}}
    return _figure(traces, keys, axis, dark)


def _figure(traces: Sequence[dict[str, Any]], labels: Sequence[str], axis: dict[str, Any], dark: bool) -> go.Figure:
    """Draws the traces with a row for each label, over a quantity from left to right."""
    row = _ROW if len(labels) <= _MANY else max(_SMALLEST_ROW, _ROW * _MANY / len(labels))
    left = label_width(labels) * 13 * 0.6 + 20
    named = {"tickfont": monospace(min(13, round(0.8 * row))), "ticklabelstandoff": 5, "fixedrange": True}
    return theme.figure(
        traces,
        dark,
        xaxis={"showgrid": True, "side": "top", "tickfont": {"size": 12}, "fixedrange": True} | axis,
        yaxis=row_axis(token_labels(labels, dark)) | named,
        height=round(_TOP + 24 + max(len(labels), 2) * row),
        margin={"l": left, "r": 8, "t": _TOP + 12, "b": 8, "autoexpand": False},
        bargap=0.3,
        dragmode=False,
        meta={"smallest_width": round(left + 120)},
    )


def _floor(probabilities: Sequence[float]) -> float:
    smallest = min((p for p in probabilities if p > 0), default=0.1)
    return 10.0 ** np.floor(np.log10(min(max(smallest, _FLOOR), 0.1)))


def _digits(p: float) -> str:
    if p == 0:
        return "0"
    return f"{p:#.3g}" if p >= 1e-4 else typeset(f"{p:.0e}".replace("e-0", "e-"))
