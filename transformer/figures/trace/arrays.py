"""The numbers at a step: strips with those of one token, and small matrices with those of all, below one another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Shaped
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import column_axis, framed, hover, monospace, note, panel, row_axis, token_labels
from transformer.figures.heatmap import cells, numbers_on, plain, struck
from transformer.figures.labels import exact, hover_label, label_width
from transformer.model.kinds import KindName

Scale = Literal["around 0", "weights", "plain"]

_STRIP, _NAME, _GAP = 28, 20, 12
"""Pixels: a strip, the line above it, the space below it."""
_MIN_ROW, _MAX_ROW, _MATRIX = 7, 16, 190
"""Pixels of a matrix's lowest and highest rows, and of a matrix unless its rows are as low as possible."""
_NUMBERED, _NUMBER_WIDTH = 16, 30
"""The most columns at which numbers stand in the cells, and the pixels of such a cell."""
_CHARACTER = 6.7
_DENSE = 30
"""The number of columns past which they stand closer, so that 40 tokens fit beside the map."""
_LABEL = 9.0
"""Pixels between two row labels, at least."""
_WIDTH = 440
"""Pixels of a figure's columns in a window that is not narrow."""
_HOVERED = 6_000
"""The most cells of a matrix that are described one by one; past it hovering gives places and digits."""


@dataclass(frozen=True)
class Strip:
    """Numbers with a name: one row of them, or a matrix with a row for each token."""

    name: str
    values: Shaped[ndarray, "*rows column"]
    columns: Sequence[str] | None = None
    """The token at each column; None where columns are dimensions."""
    rows: Sequence[str] | None = None
    """The token of each row of a matrix."""
    allowed: Bool[ndarray, "*rows column"] | None = None
    """False where a mask forbids the cell."""
    scale: Scale = "around 0"
    chosen: int | None = None
    """The row to frame."""
    unit: str = "dimension"
    """The name of a column that is no token."""


def strips_figure(strips: Sequence[Strip], *, kind: KindName | None = None, dark: bool = False) -> go.Figure:
    """Draws the strips below one another, each on its own scale; hovering gives a row's numbers exactly."""
    if not strips:
        raise ValueError("there is no strip to draw")
    for strip in strips:
        _check(strip)
    rooms = [label_width(strip.rows) * _CHARACTER + 14 for strip in strips if strip.rows is not None]
    left = max(rooms, default=8)
    heights = [_height(strip) for strip in strips]
    labels = [_label_height(strip, following) for strip, following in zip(strips, [*strips[1:], None], strict=True)]
    total = sum(heights) + sum(labels) + len(strips) * (_NAME + _GAP)
    traces, axes, shapes, notes = [], {}, [], []
    top = 0.0
    for number, (strip, height, label) in enumerate(zip(strips, heights, labels, strict=True), start=1):
        top += _NAME
        end = panel(number)
        axes |= _axes(strip, end, (max(0.0, 1 - (top + height) / total), 1 - top / total), label > 0, dark)
        traces += _traces(strip, end, dark)
        shapes += _shapes(strip, end, kind, dark)
        notes.append(note(f"{strip.name}{_reach(strip)}", 0, 1 - top / total, "left", "bottom"))
        top += height + label + _GAP
    return theme.figure(
        traces,
        dark,
        **axes,
        shapes=shapes,
        annotations=notes,
        height=round(total),
        margin={"l": left, "r": 8, "t": 0, "b": 0, "autoexpand": False},
        dragmode=False,
        meta={"smallest_width": round(left + 8 + max(map(_width, strips)))},
    )


def _check(strip: Strip) -> None:
    rows, columns = _matrix(strip).shape
    if strip.columns is not None and len(strip.columns) != columns:
        raise ValueError(f"{len(strip.columns)} column labels do not fit {columns} columns of {strip.name}")
    if strip.rows is not None and len(strip.rows) != rows:
        raise ValueError(f"{len(strip.rows)} row labels do not fit {rows} rows of {strip.name}")
    if strip.allowed is not None and strip.allowed.shape != strip.values.shape:
        raise ValueError(f"a mask of shape {strip.allowed.shape} does not fit {strip.name} of {strip.values.shape}")


def _matrix(strip: Strip) -> ndarray:
    return strip.values if strip.values.ndim == 2 else strip.values[None]


def _row_height(strip: Strip) -> float:
    return min(_MAX_ROW, max(_MIN_ROW, _MATRIX / max(1, len(strip.values))))


def _height(strip: Strip) -> float:
    return _STRIP if strip.values.ndim == 1 else max(_STRIP, _row_height(strip) * len(strip.values))


def _numbered(strip: Strip) -> bool:
    """Returns True if the numbers stand in the cells: they are few, or all that the strip has to say."""
    return strip.values.ndim == 1 and (len(strip.values) <= _NUMBERED or strip.scale == "plain")


def _width(strip: Strip) -> float:
    columns = _matrix(strip).shape[1]
    if _numbered(strip):
        longest = max(map(len, map(_exact, strip.values)), default=1)
        return columns * (_NUMBER_WIDTH if columns <= _NUMBERED else 10 + longest * _CHARACTER)
    return columns * (13 if columns <= _DENSE else 10) if strip.columns is not None else min(320, columns * 2)


def _label_height(strip: Strip, following: Strip | None) -> float:
    """Returns the room for labels below a strip whose columns are tokens, unless the next one repeats them."""
    if strip.columns is None or (following is not None and following.columns == strip.columns):
        return 0.0
    return 22.0 if _lies(strip.columns) else label_width(strip.columns) * _CHARACTER + 10


def _lies(columns: Sequence[str]) -> bool:
    """Returns True if each label has room beside the next one."""
    return label_width(columns) * _CHARACTER * len(columns) < _WIDTH


def _limit(strip: Strip) -> float:
    if strip.scale == "weights":
        return 1.0
    shown = strip.values if strip.allowed is None else strip.values[strip.allowed]
    return float(np.abs(shown).max(initial=0.0)) or 1.0


def _reach(strip: Strip) -> str:
    if strip.scale == "plain":
        return ""
    if strip.scale == "weights":
        return " · 0 to 1"
    return f" · ±{_limit(strip):.3g}" if strip.values.any() else " · all 0"


def _axes(strip: Strip, end: str, domain: tuple[float, float], labelled: bool, dark: bool) -> dict[str, dict[str, Any]]:
    """Returns the axes of a strip, with its tokens where they have room."""
    n_rows, n_columns = _matrix(strip).shape
    hidden = {"showticklabels": False}
    across: dict[str, Any] = {"range": [-0.5, n_columns - 0.5], **hidden}
    if labelled and strip.columns is not None:
        face = monospace(11 if n_columns <= _DENSE or _numbered(strip) else 9)
        angle = 0 if _lies(strip.columns) else -90
        across = column_axis(token_labels(strip.columns, dark), tickangle=angle, tickfont=face)
    down: dict[str, Any] = {"range": [n_rows - 0.5, -0.5], **hidden}
    if strip.rows is not None:
        every = math.ceil(_LABEL / _row_height(strip))
        face = monospace(11 if _row_height(strip) >= 11 else 8)
        down = row_axis(token_labels(strip.rows, dark), every=every, tickfont=face, ticklabelstandoff=4)
    across |= {"fixedrange": True, "anchor": f"y{end}"}
    down |= {"fixedrange": True, "anchor": f"x{end}", "domain": domain}
    return {f"xaxis{end}": across, f"yaxis{end}": down}


def _traces(strip: Strip, end: str, dark: bool) -> list[dict[str, Any]]:
    """Returns the cells of a strip, and those that cover what a mask forbids."""
    colours, matrix, allowed = theme.palette(dark), _matrix(strip), _allowed(strip)
    limits = 0.0 if strip.scale == "weights" else -_limit(strip), _limit(strip)
    scale: theme.Scale = theme.sequential(dark) if strip.scale == "weights" else theme.diverging(dark)
    written = None
    if strip.scale == "plain":
        scale = ((0, colours.surface), (1, colours.surface))
        written = [[_exact(value) for value in row] for row in matrix]
    numbers = numbers_on(np.where(allowed, matrix, np.nan), scale, limits, written) if _numbered(strip) else None
    gap = 1 if matrix.shape[1] <= 64 else 0, 1 if strip.values.ndim == 2 and _row_height(strip) >= 10 else 0
    shared = {"scale": scale, "limits": limits, "gap": gap, "size": 11, "end": end}
    found = [cells(matrix, numbers=numbers, **shared) | _hover(strip)]
    if not allowed.all():
        infinity = [["" if is_allowed else "−∞" for is_allowed in row] for row in allowed]
        sign = {"numbers": infinity, "textfont": {"size": 12, "color": colours.quiet}} if _numbered(strip) else {}
        found.append(plain(~allowed, colours.masked, end=end, gap=(1, 0), **sign))
    return found


def _shapes(strip: Strip, end: str, kind: KindName | None, dark: bool) -> list[dict[str, Any]]:
    """Returns the strokes through what a mask forbids, and the frame around the chosen row."""
    found = [] if _numbered(strip) else struck(~_allowed(strip), dark, end=end)
    if strip.chosen is not None:
        colour = theme.palette(dark).accent if kind is None else theme.kind_colour(kind, dark)
        n_columns = _matrix(strip).shape[1]
        found.append(framed(strip.chosen, 0, columns=n_columns, colour=colour, width=1.5, end=end))
    return found


def _allowed(strip: Strip) -> Bool[ndarray, "row column"]:
    shape = _matrix(strip).shape
    return np.ones(shape, dtype=bool) if strip.allowed is None else strip.allowed.reshape(shape)


def _hover(strip: Strip) -> dict[str, Any]:
    matrix, allowed = _matrix(strip), _allowed(strip)
    if matrix.size > _HOVERED:
        return {"hovertemplate": "row %{y}, " + strip.unit + " %{x}<br>%{z:.9g}<extra></extra>"}
    return hover(
        [
            [
                f"{_place(strip, row, column)}<br>{_exact(value)}"
                f"{'' if allowed[row, column] else ', forbidden by the mask'}"
                for column, value in enumerate(values)
            ]
            for row, values in enumerate(matrix)
        ]
    )


def _place(strip: Strip, row: int, column: int) -> str:
    where = [] if strip.rows is None else [f"<b>{hover_label(strip.rows[row])}</b>, row {row}"]
    if strip.columns is None:
        return ", ".join([*where, f"{strip.unit} {column}"])
    return ", ".join([*where, f"<b>{hover_label(strip.columns[column])}</b>, column {column}"])


def _exact(value: Any) -> str:
    """Returns a float32's shortest digits; for a number in double precision, as many as a float32 has."""
    kind = np.asarray(value).dtype
    if kind.kind == "i":
        return str(int(value))
    return exact(value) if kind == np.float32 else f"{value:.9g}"
