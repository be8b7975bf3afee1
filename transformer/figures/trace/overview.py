"""A whole pass on one screen: a column for each of a few tokens, a strip for its vector after each sublayer, bottom up,
and lines for the attention between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Shaped
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import monospace
from transformer.figures.heatmap import cells
from transformer.figures.labels import exact, hover_label
from transformer.figures.lines import points
from transformer.model.kinds import KindName

_STRIP, _BETWEEN, _NAMES, _APART = 112.0, 14.0, 118.0, 62.0
"""Pixels: a strip, the gap beside it, the names of rows, the gap between the stacks."""
_TALL, _LOWEST, _HIGHEST = 470.0, 16.0, 46.0
"""Pixels of all rows, and of the lowest and the highest row."""
_ENDS = 44
"""Pixels above and below the rows, for tokens."""
_THICKEST = 7.0
"""Pixels of a line that stands for a weight of 1."""


@dataclass(frozen=True)
class Row:
    """One strip for each shown token of a stack."""

    name: str
    values: Float[ndarray, "token d_model"]
    reach: float
    """The size of a number that has the last colour."""
    kind: KindName | None = None
    weights: Shaped[ndarray, "token key"] | None = None
    """The attention that leads here, from the tokens of the row below or, across, from the encoder's last row."""


@dataclass(frozen=True)
class Column:
    """A shown token: the words below and above its strips."""

    below: str
    above: str = ""


@dataclass(frozen=True)
class Tower:
    """The shown tokens of one stack."""

    columns: Sequence[Column]
    rows: Sequence[Row]


def overview_figure(encoder: Tower, decoder: Tower, *, dark: bool = False) -> go.Figure:
    """Draws both stacks beside each other; a line is as thick as its weight."""
    n_rows = max(len(encoder.rows), len(decoder.rows))
    pitch = min(_HIGHEST, max(_LOWEST, _TALL / n_rows))
    left = _places(len(encoder.columns), _NAMES)
    right = _places(len(decoder.columns), left[-1][1] + _APART)
    width = right[-1][1] + _NAMES
    traces, shapes = [], []
    for tower, places in ((encoder, left), (decoder, right)):
        traces += [_strips(tower, places, pitch, dark), *_words(tower, places, pitch, dark)]
        for index, row in enumerate(tower.rows):
            if row.weights is not None and row.kind is not None:
                below = (
                    (left, _top(len(encoder.rows) - 1, pitch))
                    if row.kind == "cross"
                    else (places, _top(index - 1, pitch))
                )
                shapes += _lines(row, *below, places, index * pitch, theme.kind_colour(row.kind, dark))
    traces.append(_names(encoder, _NAMES - 8, "middle left", pitch, dark))
    traces.append(_names(decoder, right[-1][1] + 8, "middle right", pitch, dark))
    bare = {"visible": False, "fixedrange": True}
    return theme.figure(
        traces,
        dark,
        shapes=shapes,
        xaxis={**bare, "range": [0, width]},
        yaxis={**bare, "range": [-_ENDS, n_rows * pitch + _ENDS / 2]},
        height=round(n_rows * pitch + 1.5 * _ENDS),
        margin={"l": 0, "r": 0, "t": 0, "b": 0, "autoexpand": False},
        dragmode=False,
        meta={"smallest_width": round(width * 0.85)},
    )


def _places(n: int, start: float) -> list[tuple[float, float]]:
    """Returns where each column begins and ends."""
    return [(start + i * (_STRIP + _BETWEEN), start + i * (_STRIP + _BETWEEN) + _STRIP) for i in range(n)]


def _top(index: int, pitch: float) -> float:
    return index * pitch + _height(pitch)


def _height(pitch: float) -> float:
    return max(7.0, pitch - 20)


def _strips(tower: Tower, places: Sequence[tuple[float, float]], pitch: float, dark: bool) -> dict[str, Any]:
    """Returns one heatmap of all strips; its cells between them are empty."""
    d_model = tower.rows[0].values.shape[1]
    n_columns, n_rows = len(places) * (d_model + 1) - 1, 2 * len(tower.rows) - 1
    shades = np.full((n_rows, n_columns), np.nan)
    texts = np.full((n_rows, n_columns), "", dtype=object)
    for r, row in enumerate(tower.rows):
        for c, column in enumerate(tower.columns):
            own = slice(c * (d_model + 1), c * (d_model + 1) + d_model)
            shades[2 * r, own] = row.values[c] / row.reach
            said = f"<b>{hover_label(column.below)}</b>, {row.name}"
            texts[2 * r, own] = [f"{said}<br>dimension {i}: {exact(value)}" for i, value in enumerate(row.values[c])]
    x = np.concatenate([np.linspace(start, end, d_model + 1) for start, end in places])
    y = [edge for r in range(len(tower.rows)) for edge in (r * pitch, _top(r, pitch))]
    scale = theme.diverging(dark)
    return cells(shades, texts.tolist(), scale=scale, limits=(-1.0, 1.0), gap=0, x=x, y=y, hoverongaps=False)


def _words(tower: Tower, places: Sequence[tuple[float, float]], pitch: float, dark: bool) -> list[dict[str, Any]]:
    middles = [(start + end) / 2 for start, end in places]
    face = monospace(13, color=theme.palette(dark).text)
    ends = ((-14.0, "below"), (_top(len(tower.rows) - 1, pitch) + 14, "above"))
    return [
        points(
            middles,
            [y] * len(middles),
            mode="text",
            text=[hover_label(text) if (text := getattr(column, end)) else "" for column in tower.columns],
            textfont=face,
        )
        for y, end in ends
    ]


def _names(tower: Tower, x: float, where: str, pitch: float, dark: bool) -> dict[str, Any]:
    """Returns the names of the rows, in the colours of their attention."""
    quiet = theme.palette(dark).quiet
    inks = [quiet if row.kind is None else theme.kind_colour(row.kind, dark) for row in tower.rows]
    return points(
        [x] * len(tower.rows),
        [index * pitch + _height(pitch) / 2 for index in range(len(tower.rows))],
        mode="text",
        text=[row.name for row in tower.rows],
        textposition=where,
        textfont={"size": 11, "color": inks},
    )


def _lines(
    row: Row,
    below: Sequence[tuple[float, float]],
    y_below: float,
    places: Sequence[tuple[float, float]],
    y: float,
    colour: str,
) -> list[dict[str, Any]]:
    """Returns a line for each weight, from the token that is attended to up to the one that attends."""
    assert row.weights is not None, "only rows with weights have lines"
    return [
        {
            "type": "line", "layer": "below", "opacity": 0.25 + 0.6 * float(weight),
            "x0": sum(below[key]) / 2, "y0": y_below, "x1": sum(places[query]) / 2, "y1": y,
            "line": {"color": colour, "width": _THICKEST * float(weight)},
        }
        for (query, key), weight in np.ndenumerate(row.weights)
        if weight > 0
    ]  # fmt: skip
