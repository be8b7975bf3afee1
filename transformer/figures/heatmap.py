"""Heatmaps: cells shaded by a scale, their numbers, the strokes of masked cells, and matrices of square cells."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Shaped
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import column_axis, hover, monospace, note, on_axes, row_axis, token_labels
from transformer.figures.labels import label_width, typeset

Texts = Sequence[Sequence[str]]
"""A text for each cell."""
Limits = tuple[float, float]
"""The values that have the first and the last colour of a scale."""

_LARGEST_CELL, _WIDTH = 46.0, 620.0
"""Pixels of a square cell, and those that all cells of a row share."""
_BAR_WIDTH, _LEGEND_LEFT, _LETTER = 120, 146, 7
"""Pixels of a colour bar, where the legend begins beside it, and of a letter of the legend, a little over."""
_NUMBER_WIDTH = 30
"""Pixels of a cell's number, with room around it."""
_NUMBERED = 36.0
"""Pixels of a square cell into which a number with two decimals fits."""
_CHARACTER = 0.6
"""The width of a monospaced character, as a fraction of its size."""


def cells(
    values: Shaped[ndarray, "row column"],
    texts: Texts | None = None,
    *,
    scale: theme.Scale | str,
    limits: Limits = (0.0, 1.0),
    numbers: Texts | None = None,
    size: int = 12,
    gap: int | tuple[int, int] = 1,
    end: str = "",
    **own: Any,
) -> dict[str, Any]:
    """Returns the trace of a heatmap: `texts` are said on hover, `numbers` stand in the cells.

    `gap` counts the pixels between cells, or those between columns and those between rows. `end` names its axes. A
    `scale` given by name is a colour axis of the layout.
    """
    limited = {"zmin": limits[0], "zmax": limits[1], "colorscale": scale, "showscale": False}
    colours = {"coloraxis": scale} if isinstance(scale, str) else limited
    beside, below = gap if isinstance(gap, tuple) else (gap, gap)
    return {
        "type": "heatmap", "z": values, "xgap": beside, "ygap": below, **colours, **on_axes(end),
        "text": numbers, "texttemplate": None if numbers is None else "%{text}", "textfont": {"size": size},
        **({} if texts is None else hover(texts)),
    } | own  # fmt: skip


def check_labels(values: Shaped[ndarray, "..."], rows: Sequence[Any], columns: Sequence[Any]) -> None:
    """Raises ValueError if there is not a label for each row and column."""
    if values.shape != (len(rows), len(columns)):
        raise ValueError(
            f"{len(rows)} row and {len(columns)} column labels do not fit a matrix of shape {values.shape}"
        )


def numbers_on(
    values: Float[ndarray, "row column"],
    scale: theme.Scale,
    limits: Limits = (0.0, 1.0),
    written: Texts | None = None,
) -> list[list[str]]:
    """Returns what is written in each cell, by default its value in short, in an ink that stands out; NaN is empty."""
    if written is None:
        written = [[short(value) for value in row] for row in values.tolist()]
    low, high = limits
    return [
        [inked(text, scale, (value - low) / (high - low)) for text, value in zip(texts, row, strict=True)]
        for texts, row in zip(written, values.tolist(), strict=True)
    ]


def inked(text: str, scale: theme.Scale, position: float) -> str:
    """Returns the text in the ink that stands out on this position of the scale, 0..1."""
    return f'<span style="color:{theme.ink_on(scale, position)}">{text}</span>' if text else ""


def short(value: float, sign: str = "") -> str:
    """Returns a number of at most four characters, with its sign; a plain 0 where it rounds to nothing."""
    if math.isnan(value):
        return ""
    size = abs(value)
    if size < 0.005:
        return "0"
    return typeset(f"{value:{sign}.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}")


def plain(marked: Bool[ndarray, "row column"], colour: str, **own: Any) -> dict[str, Any]:
    """Returns a trace that paints the marked cells in one colour and says nothing on hover."""
    return cells(np.where(marked, 1.0, np.nan), scale=((0, colour), (1, colour)), hoverinfo="skip", **own)


def strokes(marked: Bool[ndarray, "row column"], *, crossed: bool = False) -> str:
    """Returns the path of a slanting stroke, or of a cross, through each of the marked cells."""
    slants = [(0.25, -0.25), (-0.25, 0.25)] if crossed else [(0.25, -0.25)]
    return " ".join(
        f"M{column - 0.25},{row + low}L{column + 0.25},{row + high}"
        for row, column in np.argwhere(marked).tolist()
        for low, high in slants
    )


def struck(marked: Bool[ndarray, "row column"], dark: bool, *, end: str = "") -> list[dict[str, Any]]:
    """Returns the shape of the thin strokes through masked cells, if there are any."""
    if not marked.any():
        return []
    line = {"color": theme.palette(dark).quiet, "width": 0.6}
    return [{"type": "path", "path": strokes(marked), "line": line, "opacity": 0.7, **on_axes(end, "ref")}]


@dataclass(frozen=True)
class Side:
    """The labels along one side of a matrix."""

    labels: Sequence[str]
    """The labels with their markup."""
    width: int
    """The characters of the widest label."""
    title: str = ""

    @classmethod
    def of_tokens(cls, tokens: Sequence[str], title: str, dark: bool) -> "Side":
        """Returns the side of a matrix at which tokens stand."""
        return cls(token_labels(tokens, dark), label_width(tokens), title)


def square_axes(
    rows: Side, columns: Side, *, size: float, colour: str, angle: int, standoff: int
) -> dict[str, dict[str, Any]]:
    """Returns the axes of square cells that begin at the upper left corner; the titles have the colour."""
    shared = {"ticklabelstandoff": standoff, "constrain": "domain", "tickfont": monospace(size)}
    title = {"font": {"color": colour, "size": 13}, "standoff": 8}
    return {
        "xaxis": column_axis(
            columns.labels, side="top", tickangle=angle, constraintoward="left", title={"text": columns.title, **title}
        ) | shared,
        "yaxis": row_axis(
            rows.labels, scaleanchor="x", constraintoward="top", title={"text": rows.title, **title}
        ) | shared,
    }  # fmt: skip


def square_matrix(
    values: Float[ndarray, "row column"],
    texts: Texts,
    rows: Side,
    columns: Side,
    *,
    scale: theme.Scale,
    limits: Limits,
    legend: str,
    written: Texts | None = None,
    room: float = _NUMBERED,
    colour: str | None = None,
    width: float = _WIDTH,
    masked: Bool[ndarray, "row column"] | None = None,
    above: Iterable[dict[str, Any]] = (),
    shapes: Iterable[dict[str, Any]] = (),
    dark: bool,
) -> go.Figure:
    """Draws a matrix of square cells with a label for each row and column, and above it a colour bar with a legend.

    Cells share `width` pixels at most. From `room` pixels on they hold their numbers, or what is `written`. Masked
    cells are painted over and struck through. `colour` is that of the titles; the traces `above` lie on the cells.
    In a narrower column the cells shrink; `layout.meta["squares"]` tells `scrolling_figure` how much lower it then is.
    """
    cell = square_size(len(columns.labels), width)
    numbers = numbers_on(values, scale, limits, written) if cell >= room else None
    size = max(8.0, min(14.0, cell * 0.8))
    row_width, column_width = (side.width * size * _CHARACTER for side in (rows, columns))
    lies = column_width < cell - 4
    top = 76 + (size * 1.3 if lies else column_width + 6)
    left = 42 + row_width if rows.title else 18 + row_width
    gap = 1 if cell >= 12 else 0
    at = {"x": np.arange(values.shape[1]), "y": np.arange(values.shape[0])}
    traces = [
        cells(values, texts, scale=scale, limits=limits, numbers=numbers, gap=gap, hoverongaps=False, **at)
        | {"showscale": True, "colorbar": _colour_bar(limits, dark)}
    ]
    strokes_of_masked: list[dict[str, Any]] = []
    if masked is not None and masked.any():
        check_labels(masked, rows.labels, columns.labels)
        traces.append(plain(masked, theme.palette(dark).masked, gap=gap, **at))
        strokes_of_masked = struck(masked, dark)
        legend += "   ╱ masked"
    narrowest = len(columns.labels) * min(cell, max(size * 1.15, 0 if numbers is None else _NUMBER_WIDTH))
    counts = {"rows": len(rows.labels), "columns": len(columns.labels)}
    return theme.figure(
        [*traces, *above],
        dark,
        **square_axes(
            rows, columns, size=size, colour=colour or theme.palette(dark).quiet, angle=0 if lies else -90, standoff=6
        ),
        shapes=[*strokes_of_masked, *shapes],
        annotations=[note(legend, 0, 1, "left", "top", xshift=_LEGEND_LEFT, yshift=top + 4, borderpad=0)],
        height=round(top + len(rows.labels) * cell + 12),
        margin={"l": left, "r": 8, "t": top, "b": 12, "autoexpand": False},
        meta={
            "smallest_width": round(left + max(narrowest, _LEGEND_LEFT + len(legend) * _LETTER) + 8),
            "squares": {**counts, "beside": left + 8, "above": top + 12},
        },
    )


def square_size(n_columns: int, width: float = _WIDTH) -> float:
    """Returns the pixels of a square cell where so many columns share a width."""
    return min(_LARGEST_CELL, width / max(n_columns, 1))


def _colour_bar(limits: Limits, dark: bool) -> dict[str, object]:
    """Returns a small bar above the matrix, where it stays however wide the page is."""
    ticks = sorted({limits[0], 0.0, limits[1]})
    return {
        "tickfont": {"size": 12, "color": theme.palette(dark).quiet},
        "tickvals": ticks,
        "ticktext": [typeset(f"{tick:+.3g}" if limits[0] < 0 < tick else f"{tick:.3g}") for tick in ticks],
        "orientation": "h",
        "thickness": 8,
        **{"len": _BAR_WIDTH, "lenmode": "pixels", "outlinewidth": 0, "ypad": 0, "xpad": 0},
        **{"x": 0, "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"},
    }
