"""Attention as matrices: queries are rows, keys are columns, always."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import framed
from transformer.figures.heatmap import Limits, Side, Texts, check_labels, short, square_matrix, square_size
from transformer.figures.labels import exact, hover_label
from transformer.model.kinds import KindName

AXIS_TITLES: dict[KindName, tuple[str, str]] = {
    "encoder_self": ("query: source token", "key: source token it looks at"),
    "decoder_self": ("query: token the decoder reads", "key: earlier token it looks at"),
    "cross": ("query: token being written", "key: source token it looks at"),
}
"""The titles of rows and columns."""

ROUNDING = 1e-6
"""A change of a weight, or nats, that rounding alone can cause: it has no colour and no bar."""
_NUMBERED_CELLS = 10
"""The most rows and columns at which numbers stand in the cells."""
WIDTH = 460
"""Pixels of a column, in which a figure stands beside another."""
_CELL, _LABEL = 6.5, 9.0
"""Pixels of a matrix in a column: a cell, and the distance of two labels, at least."""
_SHORT_SIDE = 190
"""Pixels of a side that is too short for its whole title."""


def head_heatmap(
    weights: Float[ndarray, "query key"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: KindName,
    mask: Bool[ndarray, "query key"] | None = None,
    dark: bool = False,
    relative: bool = False,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Draws one head's weights as a matrix; hovering names query and key and gives the exact float32.

    Masked cells (`mask` False) are struck through in a colour outside the scale. `relative` shades up to the head's
    largest weight instead of 1. `chosen` frames the cell of that query and key.
    """
    check_labels(weights, queries, keys)
    masked = np.zeros(weights.shape, dtype=bool) if mask is None else ~mask
    notes = [
        [
            f"weight {exact(weight)}{', masked: this query may not see this key' if hidden else ''}"
            for weight, hidden in zip(row, hidden_row, strict=True)
        ]
        for row, hidden_row in zip(weights, masked, strict=True)
    ]
    top = float(weights.max(initial=0.0)) if relative else 1.0
    return _matrix(
        weights, notes, queries, keys, kind=kind, masked=masked, legend="weight", limits=(0.0, top or 1.0),
        scale=theme.sequential(dark), chosen=chosen, dark=dark,
    )  # fmt: skip


def difference_figure(
    before: Float[ndarray, "query key"],
    after: Float[ndarray, "query key"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: KindName,
    mask: Bool[ndarray, "query key"] | None = None,
    names: tuple[str, str] = ("before", "after"),
    dark: bool = False,
) -> go.Figure:
    """Draws after minus before in each cell, around 0, for a column of `WIDTH` pixels; `names` say what the two are.

    Raises ValueError if the two matrices are of different shape.
    """
    if before.shape != after.shape:
        raise ValueError(f"before is {before.shape} and after {after.shape}: cells can only be compared one to one")
    check_labels(before, queries, keys)
    difference = after - before
    notes = [
        [
            f"{'' if change < 0 else '+'}{exact(change)}<br>{names[0]} {exact(old)}<br>{names[1]} {exact(new)}"
            for change, old, new in zip(*rows, strict=True)
        ]
        for rows in zip(difference, before, after, strict=True)
    ]
    largest = float(np.abs(difference).max(initial=0.0))
    reach = largest if largest > ROUNDING else 1.0
    fig = _matrix(
        difference, notes, queries, keys, kind=kind, masked=None if mask is None else ~mask, legend="change",
        limits=(-reach, reach), scale=theme.diverging(dark), sign="+", dark=dark,
    )  # fmt: skip
    return for_column(fig, len(queries), len(keys))


def for_column(fig: go.Figure, n_queries: int, n_keys: int) -> go.Figure:
    """Fits a matrix of square cells and its labels into a column of `WIDTH` pixels.

    In a narrower window, such as a phone's, its cells shrink until its labels would touch.
    """
    layout: Any = fig.layout
    margin = layout.margin
    drawn = (layout.height - margin.t - margin.b) / max(n_queries, 1)
    cell = min(drawn, max(_CELL, (WIDTH - margin.l - margin.r) / max(n_keys, 1)))
    size = {"size": max(8.0, min(14.0, cell * 0.72))}
    every = math.ceil(_LABEL / cell)  # labels stay apart; hovering names each token
    for axis in (layout.xaxis, layout.yaxis):
        axis.update(tickfont=size, tickvals=axis.tickvals[::every], ticktext=axis.ticktext[::every])
    smallest = margin.l + margin.r + min(cell, size["size"] / every) * n_keys
    return fig.update_layout(
        height=round(margin.t + margin.b + cell * n_queries),
        meta=layout.meta | {"smallest_width": round(smallest)},
    )


def query_key_texts(queries: Sequence[str], keys: Sequence[str], notes: Texts) -> list[list[str]]:
    """Returns a text for each cell: its query, its key, and the note on it."""
    return [
        [
            f"query <b>{hover_label(query)}</b>, row {row}<br>key <b>{hover_label(key)}</b>, column {column}"
            f"<br>{notes[row][column]}"
            for column, key in enumerate(keys)
        ]
        for row, query in enumerate(queries)
    ]


def _matrix(
    values: Float[ndarray, "query key"],
    notes: Texts,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: KindName,
    masked: Bool[ndarray, "query key"] | None,
    legend: str,
    limits: Limits,
    scale: theme.Scale,
    sign: str = "",
    chosen: tuple[int, int] | None = None,
    dark: bool,
) -> go.Figure:
    """Draws the values with their numbers where they fit; `notes` are said below the query and the key."""
    texts = query_key_texts(queries, keys, notes)
    numbered = max(values.shape, default=0) <= _NUMBERED_CELLS
    colour = theme.kind_colour(kind, dark)
    cell = square_size(len(keys))
    titles = [
        title if count * cell > _SHORT_SIDE else title.split(":")[0]
        for title, count in zip(AXIS_TITLES[kind], values.shape, strict=True)
    ]
    return square_matrix(
        values,
        texts,
        Side.of_tokens(queries, titles[0], dark),
        Side.of_tokens(keys, titles[1], dark),
        scale=scale,
        limits=limits,
        legend=legend,
        written=[[short(value, sign) for value in row] for row in values.tolist()] if numbered else None,
        room=0.0 if numbered else math.inf,
        colour=colour,
        masked=masked,
        shapes=[] if chosen is None else [framed(*chosen, colour=colour)],
        dark=dark,
    )
