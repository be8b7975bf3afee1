"""The numbers at a step: strips of one token's numbers, and small matrices of all tokens', below one another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Shaped
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, exact, hover_label, label_width
from transformer.model.kinds import KindName

Scale = Literal["around 0", "weights", "plain"]

_STRIP, _NAME, _GAP = 28, 20, 12
"""Pixels: a strip, the line above it, the space below it."""
_LEAST_ROW, _MOST_ROW, _MATRIX = 7, 16, 190
"""Pixels: of a matrix's rows, and what a matrix may take together if its rows can be as low as that."""
_NUMBERED, _NUMBER_WIDTH = 16, 30
_CHARACTER = 6.7
_DENSE = 30
"""Columns past which they stand closer, so that 40 tokens fit beside the map."""
_LABEL = 9.0
"""Pixels between two row labels at least."""
_USUAL_WIDTH = 440
"""Pixels of a figure's columns in a window that is not narrow."""
_HOVERED = 6_000
"""Cells of a matrix that are still described one by one; past it hovering gives places and digits."""


@dataclass(frozen=True)
class Strip:
    """Some numbers with a name: one row of them, or a matrix with a row for each token."""

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
    """What a column is where it is no token."""


def strips_figure(strips: Sequence[Strip], *, kind: KindName | None = None, dark: bool = False) -> go.Figure:
    """The strips below one another, each on its own scale; hovering gives a row's numbers exactly."""
    if not strips:
        raise ValueError("there is no strip to draw")
    for strip in strips:
        _check(strip)
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    left = max([_room(strip.rows) for strip in strips if strip.rows is not None], default=8)
    heights = [_height(strip) for strip in strips]
    labels = [_label_height(strip, following) for strip, following in zip(strips, [*strips[1:], None], strict=True)]
    total = sum(heights) + sum(labels) + len(strips) * (_NAME + _GAP)
    top = 0.0
    for number, (strip, height, label) in enumerate(zip(strips, heights, labels, strict=True), start=1):
        top += _NAME
        axis = "" if number == 1 else str(number)
        domain = [max(0.0, 1 - (top + height) / total), 1 - top / total]
        _frame(fig, strip, axis, domain, label > 0, dark)
        _draw(fig, strip, axis, kind, dark)
        _say(fig, f"{strip.name}{_reach(strip)}", 1 - top / total, colours.quiet)
        top += height + label + _GAP
    widest = max((_width(strip) for strip in strips), default=0)
    return fig.update_layout(
        height=round(total),
        margin={"l": left, "r": 8, "t": 0, "b": 0, "autoexpand": False},
        dragmode=False,
        meta={"smallest_width": round(left + 8 + widest)},
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
    return min(_MOST_ROW, max(_LEAST_ROW, _MATRIX / max(1, len(strip.values))))


def _height(strip: Strip) -> float:
    return _STRIP if strip.values.ndim == 1 else max(_STRIP, _row_height(strip) * len(strip.values))


def _numbered(strip: Strip) -> bool:
    """Whether the numbers stand in the cells: where they are few, or are all that the strip has to say."""
    return strip.values.ndim == 1 and (len(strip.values) <= _NUMBERED or strip.scale == "plain")


def _width(strip: Strip) -> float:
    columns = _matrix(strip).shape[1]
    if _numbered(strip):
        longest = max(map(len, map(_exact, strip.values)), default=1)
        return columns * (_NUMBER_WIDTH if columns <= _NUMBERED else 10 + longest * _CHARACTER)
    return columns * (13 if columns <= _DENSE else 10) if strip.columns is not None else min(320, columns * 2)


def _room(rows: Sequence[str]) -> float:
    return label_width(rows) * _CHARACTER + 14


def _label_height(strip: Strip, following: Strip | None) -> float:
    """Below a strip whose columns are tokens, unless the next one repeats them."""
    if strip.columns is None or (following is not None and following.columns == strip.columns):
        return 0.0
    return 22.0 if _lies(strip.columns) else label_width(strip.columns) * _CHARACTER + 10


def _lies(columns: Sequence[str]) -> bool:
    """Whether each label has room beside the next one."""
    return label_width(columns) * _CHARACTER * len(columns) < _USUAL_WIDTH


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


def _frame(fig: go.Figure, strip: Strip, axis: str, domain: list[float], labelled: bool, dark: bool) -> None:
    colours = theme.palette(dark)
    rows, columns = _matrix(strip).shape
    bare = {"showline": False, "ticks": "", "showgrid": False, "zeroline": False, "fixedrange": True}
    shown: dict[str, Any] = {"showticklabels": False}
    if labelled and strip.columns is not None:
        shown = {
            "tickvals": list(range(columns)),
            "ticktext": axis_labels(strip.columns, quiet=colours.quiet, faint=colours.faint),
            "tickangle": 0 if _lies(strip.columns) else -90,
            "tickfont": {"family": theme.MONOSPACE, "size": 11 if columns <= _DENSE or _numbered(strip) else 9},
        }
    named: dict[str, Any] = {"showticklabels": False}
    if strip.rows is not None:
        every = math.ceil(_LABEL / _row_height(strip))
        named = {
            "tickvals": list(range(0, rows, every)),
            "ticktext": axis_labels(strip.rows[::every], quiet=colours.quiet, faint=colours.faint),
            "tickfont": {"family": theme.MONOSPACE, "size": 11 if _row_height(strip) >= 11 else 8},
            "ticklabelstandoff": 4,
        }
    fig.update_layout(
        {
            f"xaxis{axis}": {**bare, **shown, "anchor": f"y{axis}", "range": [-0.5, columns - 0.5]},
            f"yaxis{axis}": {**bare, **named, "anchor": f"x{axis}", "domain": domain, "range": [rows - 0.5, -0.5]},
        }
    )


def _draw(fig: go.Figure, strip: Strip, axis: str, kind: KindName | None, dark: bool) -> None:
    colours, matrix = theme.palette(dark), _matrix(strip)
    scale: Any = theme.sequential(dark) if strip.scale == "weights" else theme.diverging(dark)
    limit = _limit(strip)
    low = 0.0 if strip.scale == "weights" else -limit
    if strip.scale == "plain":
        scale = [[0, colours.surface], [1, colours.surface]]
    few = matrix.shape[1] <= 64
    fig.add_heatmap(
        z=matrix,
        zmin=low,
        zmax=limit,
        colorscale=scale,
        showscale=False,
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        xgap=1 if few else 0,
        ygap=1 if strip.values.ndim == 2 and _row_height(strip) >= 10 else 0,
        text=[_numbers(strip, scale, low, limit, dark)] if _numbered(strip) else None,
        texttemplate="%{text}" if _numbered(strip) else None,
        textfont={"size": 11},
        **_hover(strip),
    )
    if strip.allowed is not None and not strip.allowed.all():
        _strike(fig, strip, axis, dark)
    if strip.chosen is not None:
        colour = colours.accent if kind is None else theme.kind_colour(kind, dark)
        corners = {"x0": -0.5, "x1": matrix.shape[1] - 0.5, "y0": strip.chosen - 0.5, "y1": strip.chosen + 0.5}
        fig.add_shape(type="rect", **corners, xref=f"x{axis}", yref=f"y{axis}", line={"color": colour, "width": 1.5})


def _hover(strip: Strip) -> dict[str, Any]:
    matrix = _matrix(strip)
    if matrix.size > _HOVERED:
        return {"hovertemplate": "row %{y}, " + strip.unit + " %{x}<br>%{z:.9g}<extra></extra>"}
    forbidden = ", forbidden by the mask"
    allowed = np.ones(matrix.shape, dtype=bool) if strip.allowed is None else strip.allowed.reshape(matrix.shape)
    texts = [
        [
            f"{_place(strip, row, column)}<br>{_exact(value)}{forbidden * (not allowed[row, column])}"
            for column, value in enumerate(values)
        ]
        for row, values in enumerate(matrix)
    ]
    return {"customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}


def _place(strip: Strip, row: int, column: int) -> str:
    where = [] if strip.rows is None else [f"<b>{hover_label(strip.rows[row])}</b>, row {row}"]
    if strip.columns is None:
        return ", ".join([*where, f"{strip.unit} {column}"])
    return ", ".join([*where, f"<b>{hover_label(strip.columns[column])}</b>, column {column}"])


def _exact(value: Any) -> str:
    """A float32's shortest digits; of a number computed in double precision, as many as a float32 has."""
    kind = np.asarray(value).dtype
    if kind.kind == "i":
        return str(int(value))
    return exact(value) if kind == np.float32 else f"{value:.9g}"


def _numbers(strip: Strip, scale: Any, low: float, limit: float, dark: bool) -> list[str]:
    found = []
    for column, value in enumerate(strip.values):
        if strip.scale == "plain":
            found.append(f'<span style="color:{theme.palette(dark).text}">{_exact(value)}</span>')
        elif strip.allowed is not None and not strip.allowed[column]:
            found.append("")
        else:
            ink = theme.ink_on(scale, (float(value) - low) / (limit - low))
            found.append(f'<span style="color:{ink}">{_short(float(value))}</span>')
    return found


def _short(value: float) -> str:
    size = abs(value)
    text = "0" if size < 0.005 else f"{value:.2f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:.0f}"
    return text.replace("-", "−")


def _strike(fig: go.Figure, strip: Strip, axis: str, dark: bool) -> None:
    assert strip.allowed is not None, "only a strip with a mask is struck"
    colours, allowed = theme.palette(dark), strip.allowed.reshape(_matrix(strip).shape)
    fig.add_heatmap(
        z=np.where(allowed, np.nan, 0.0),
        colorscale=[[0, colours.masked], [1, colours.masked]],
        showscale=False,
        hoverinfo="skip",
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        xgap=1,
        text=[["" if open_ else "−∞" for open_ in allowed[0]]] if _numbered(strip) else None,
        texttemplate="%{text}" if _numbered(strip) else None,
        textfont={"size": 12, "color": colours.quiet},
    )
    if _numbered(strip):
        return
    strokes = " ".join(
        f"M{column - 0.25},{row + 0.25}L{column + 0.25},{row - 0.25}"
        for row, column in zip(*(places.tolist() for places in np.nonzero(~allowed)), strict=True)
    )
    line = {"color": colours.quiet, "width": 0.6}
    fig.add_shape(type="path", path=strokes, xref=f"x{axis}", yref=f"y{axis}", line=line, opacity=0.7)


def _say(fig: go.Figure, text: str, y: float, colour: str) -> None:
    fig.add_annotation(
        text=text,
        showarrow=False,
        **{"xref": "paper", "yref": "paper", "x": 0, "y": y, "xanchor": "left", "yanchor": "bottom", "borderpad": 1},
        font={"size": 12, "color": colour},
    )
