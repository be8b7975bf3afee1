"""How alike every head of one model is to every head of another, with the pairs that belong together."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import column_axis, framed, row_axis
from transformer.figures.heatmap import cells, numbers_on
from transformer.model.kinds import KindName

_CELL, _SMALL_CELL, _LEFT, _TOP = 30, 14, 92, 78
"""Pixels."""
_NUMBERED = 16
"""The most heads at which numbers stand in the cells."""


def matching_figure(
    distances: Float[ndarray, "head other"],
    heads: Sequence[tuple[int, int]],
    others: Sequence[tuple[int, int]],
    partners: Sequence[int | None],
    *,
    chosen: int | None = None,
    kind: KindName,
    names: tuple[str, str],
    dark: bool = False,
) -> go.Figure:
    """Draws the first model's heads as rows, the second's as columns; pairs are framed, the chosen row's boldly."""
    if distances.shape != (len(heads), len(others)) or len(partners) != len(heads):
        raise ValueError(f"{len(heads)} and {len(others)} heads do not fit distances of shape {distances.shape}")
    scale, colour = theme.distances(dark), theme.kind_colour(kind, dark)
    numbered = max(distances.shape, default=0) <= _NUMBERED
    cell = _CELL if numbered else _SMALL_CELL
    texts = [
        [
            f"{names[0]}: layer {a}, head {b}<br>{names[1]}: layer {c}, head {d}<br>distance {distances[i, j]:.6g}"
            + ("<br>paired" if partners[i] == j else "")
            for j, (c, d) in enumerate(others)
        ]
        for i, (a, b) in enumerate(heads)
    ]
    numbers = numbers_on(np.clip(distances, 0, 1), scale) if numbered else None
    rows, columns = ([f"{layer}.{head}" for layer, head in side] for side in (heads, others))
    titles = [{"text": f"{name}: layer.head", "standoff": 6} for name in names]
    shared = {"fixedrange": True, "tickfont": {"size": 12}}
    return theme.figure(
        [cells(distances, texts, scale=scale, numbers=numbers, size=11)],
        dark,
        xaxis=column_axis(columns, side="top", tickangle=0 if len(others) <= _NUMBERED else -90, title=titles[1])
        | shared,
        yaxis=row_axis(rows, title=titles[0]) | shared,
        shapes=[
            framed(row, column, colour=colour, width=3.5 if row == chosen else 1.5)
            for row, column in enumerate(partners)
            if column is not None
        ],
        height=round(_TOP + len(heads) * cell + 8),
        margin={"l": _LEFT, "r": 8, "t": _TOP, "b": 8, "autoexpand": False},
        dragmode=False,
        meta={"smallest_width": round(_LEFT + len(others) * cell * 1.1 + 8)},
    )
