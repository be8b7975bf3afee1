"""Attention as matrices: queries are rows, keys are columns, always."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, exact, hover_label, label_width
from transformer.model.kinds import KindName

AXIS_TITLES: dict[KindName, tuple[str, str]] = {
    "encoder_self": ("query: source token", "key: source token it looks at"),
    "decoder_self": ("query: token the decoder reads", "key: earlier token it looks at"),
    "cross": ("query: token being written", "key: source token it looks at"),
}
"""What stands at rows and columns."""

ROUNDING = 1e-6
"""A change of a weight, or nats, that rounding alone can cause: it has no colour and no bar."""
_NUMBERED_CELLS = 10
"""Up to this many rows and columns the numbers stand in the cells."""
_LARGEST_CELL, _MATRIX_WIDTH, _LEGEND_HEIGHT = 46.0, 600.0, 36.0
"""Pixels. Many cells share the matrix's width; a narrower page shrinks them all."""
_BAR_WIDTH, _BAR_GAP = 120, 26
_NUMBER_WIDTH = 30
"""Of a cell's number, with room around it."""
_LETTER_WIDTH = 7
"""Of the legend's, on average and a little over."""
_CHARACTER_WIDTH = 0.6
"""Of the monospaced face, as a fraction of its size."""


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
    """One head's weights as a matrix of square cells; hovering names query and key and gives the exact float32.

    Masked cells (`mask` False) are struck through in a colour outside the scale. `relative` shades up to the head's
    largest weight instead of 1. `chosen` frames the cell of that query and key.
    """
    _check(weights, queries, keys, mask)
    hover = [[_weight_text(weights, mask, row, column) for column in range(len(keys))] for row in range(len(queries))]
    top = float(weights.max(initial=0.0)) if relative else 1.0
    trace = _heatmap(weights, (0.0, top or 1.0), theme.sequential(dark), ".2f", dark)
    fig = _matrix(trace, "weight", hover, queries, keys, kind=kind, mask=mask, dark=dark)
    return fig if chosen is None else frame(fig, chosen, theme.kind_colour(kind, dark))


def difference_heatmap(
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
    """After minus before in each cell, around 0; ValueError where the two matrices are of different shape.

    `names` say what the two are.
    """
    if before.shape != after.shape:
        raise ValueError(f"before is {before.shape} and after {after.shape}: cells can only be compared one to one")
    _check(before, queries, keys, mask)
    difference = after - before
    largest = float(np.abs(difference).max(initial=0.0))
    reach = largest if largest > ROUNDING else 1.0
    hover = [
        [
            f"{_signed(difference[row, column])}<br>{names[0]} {exact(before[row, column])}"
            f"<br>{names[1]} {exact(after[row, column])}"
            for column in range(len(keys))
        ]
        for row in range(len(queries))
    ]
    trace = _heatmap(difference, (-reach, reach), theme.diverging(dark), "+.2f", dark)
    return _matrix(trace, "change", hover, queries, keys, kind=kind, mask=mask, dark=dark)


def frame(fig: go.Figure, cell: tuple[int, int], colour: str) -> go.Figure:
    """The figure with a frame around the cell of this row and column."""
    row, column = cell
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return fig.add_shape(type="rect", **corners, line={"color": colour, "width": 2.5})


def _heatmap(
    values: Float[ndarray, "query key"],
    limits: tuple[float, float],
    scale: theme.Scale,
    form: str,
    dark: bool,
) -> go.Heatmap:
    numbered = max(values.shape, default=0) <= _NUMBERED_CELLS
    return go.Heatmap(
        z=values,
        zmin=limits[0],
        zmax=limits[1],
        colorscale=scale,
        colorbar=_colour_bar(limits, dark),
        text=_cell_numbers(values, limits, scale, form) if numbered else None,
        texttemplate="%{text}" if numbered else None,
    )


def _matrix(
    trace: go.Heatmap,
    quantity: str,
    hover: list[list[str]],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: KindName,
    mask: Bool[ndarray, "query key"] | None,
    dark: bool,
) -> go.Figure:
    cell = min(_LARGEST_CELL, _MATRIX_WIDTH / max(len(keys), 1))
    gap = 1 if cell >= 12 else 0
    texts = [
        [
            f"query <b>{hover_label(query)}</b>, row {row}<br>key <b>{hover_label(key)}</b>, column {column}"
            f"<br>{hover[row][column]}"
            for column, key in enumerate(keys)
        ]
        for row, query in enumerate(queries)
    ]
    trace.update(x=np.arange(len(keys)), y=np.arange(len(queries)), xgap=gap, ygap=gap, textfont={"size": 12})
    trace.update(customdata=texts, hovertemplate="%{customdata}<extra></extra>")
    fig = theme.apply(go.Figure(trace), dark)
    masked = False
    if mask is not None and not mask.all():
        masked = True
        _strike_masked(fig, mask, gap, dark)
    _draw_axes(fig, queries, keys, kind, cell, quantity, masked, dark)
    return fig


def _draw_axes(
    fig: go.Figure,
    queries: Sequence[str],
    keys: Sequence[str],
    kind: KindName,
    cell: float,
    quantity: str,
    masked: bool,
    dark: bool,
) -> None:
    """Square cells from the upper left corner, a label for each, and room for exactly these labels."""
    colours = theme.palette(dark)
    size = max(8.0, min(14.0, cell * 0.8))
    key_width, query_width = (label_width(labels) * size * _CHARACTER_WIDTH for labels in (keys, queries))
    lies = key_width < cell - 4
    key_height = size * 1.3 if lies else key_width + 6
    row_title, column_title = _titles(kind, len(queries) * cell, len(keys) * cell)
    title_font = {"color": theme.kind_colour(kind, dark)}
    shared = {
        "showline": False,
        "ticks": "",
        "ticklabelstandoff": 6,
        "constrain": "domain",
        "tickfont": {"size": size, "family": theme.MONOSPACE},
    }
    fig.update_xaxes(
        **shared,
        tickvals=np.arange(len(keys)),
        ticktext=axis_labels(keys, quiet=colours.quiet, faint=colours.faint),
        tickangle=0 if lies else -90,
        side="top",
        range=[-0.5, len(keys) - 0.5],
        constraintoward="left",
        title={"text": column_title, "font": title_font, "standoff": 8},
    )
    fig.update_yaxes(
        **shared,
        tickvals=np.arange(len(queries)),
        ticktext=axis_labels(queries, quiet=colours.quiet, faint=colours.faint),
        range=[len(queries) - 0.5, -0.5],
        scaleanchor="x",
        constraintoward="top",
        title={"text": row_title, "font": title_font, "standoff": 8},
    )
    top, left = _LEGEND_HEIGHT + 40 + key_height, 42 + query_width
    fig.update_layout(
        height=round(top + len(queries) * cell + 12),
        margin={"l": left, "r": 8, "t": top, "b": 12, "autoexpand": False},
    )
    legend = f"{quantity}{'   ╱ masked' if masked else ''}"
    numbered = max(len(queries), len(keys)) <= _NUMBERED_CELLS
    matrix_width = len(keys) * min(cell, max(size * 1.15, _NUMBER_WIDTH * numbered))
    legend_width = _BAR_WIDTH + _BAR_GAP + len(legend) * _LETTER_WIDTH
    fig.update_layout(meta={"smallest_width": round(left + max(matrix_width, legend_width) + 8)})
    fig.add_annotation(
        text=legend,
        **{"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xshift": _BAR_WIDTH + _BAR_GAP, "yshift": top + 4},
        **{"xanchor": "left", "yanchor": "top", "showarrow": False, "borderpad": 0},
        font={"size": 12, "color": colours.quiet},
    )


def _titles(kind: KindName, height: float, width: float) -> tuple[str, str]:
    """What the rows and the columns are; only "query" and "key" along a side too short for more."""
    row_title, column_title = AXIS_TITLES[kind]
    short = 190
    return (
        row_title if height > short else row_title.split(":")[0],
        column_title if width > short else column_title.split(":")[0],
    )


def _strike_masked(fig: go.Figure, mask: Bool[ndarray, "query key"], gap: int, dark: bool) -> None:
    colours = theme.palette(dark)
    fig.add_heatmap(
        z=np.where(mask, np.nan, 0.0),
        x=np.arange(mask.shape[1]),
        y=np.arange(mask.shape[0]),
        colorscale=[[0, colours.masked], [1, colours.masked]],
        showscale=False,
        hoverinfo="skip",
        xgap=gap,
        ygap=gap,
    )
    fig.add_shape(type="path", path=strokes(~mask), line={"color": colours.quiet, "width": 0.6}, opacity=0.7)


def strokes(cells: Bool[ndarray, "row column"], *, crossed: bool = False) -> str:
    """The path of a slanting stroke through each of these cells, or of a cross."""
    slants = [(0.25, -0.25), *[(-0.25, 0.25)] * crossed]
    return " ".join(
        f"M{column - 0.25},{row + low}L{column + 0.25},{row + high}"
        for row, column in np.argwhere(cells).tolist()
        for low, high in slants
    )


def _colour_bar(limits: tuple[float, float], dark: bool) -> dict[str, object]:
    """A small bar above the matrix, where it stays whatever the page's width."""
    colours = theme.palette(dark)
    ticks = sorted({limits[0], 0.0, limits[1]})
    return {
        "tickfont": {"size": 12, "color": colours.quiet},
        "tickvals": ticks,
        "ticktext": [_typeset(f"{tick:+.3g}" if limits[0] < 0 < tick else f"{tick:.3g}") for tick in ticks],
        "orientation": "h",
        "thickness": 8,
        "len": _BAR_WIDTH,
        "lenmode": "pixels",
        "outlinewidth": 0,
        "ypad": 0,
        "xpad": 0,
        **{"x": 0, "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"},
    }


def _cell_numbers(
    values: Float[ndarray, "query key"], limits: tuple[float, float], scale: theme.Scale, form: str
) -> list[list[str]]:
    """Two decimals for each cell, legible on its colour; what would round to nothing is a plain 0."""
    low, high = limits

    def number(value: float) -> str:
        text = "0" if abs(value) < 0.005 else _typeset(format(value, form))
        return f'<span style="color:{theme.ink_on(scale, (value - low) / (high - low))}">{text}</span>'

    return [[number(value) for value in row] for row in values.tolist()]


def _typeset(number: str) -> str:
    return number.replace("-", "−")


def _weight_text(
    weights: Float[ndarray, "query key"], mask: Bool[ndarray, "query key"] | None, row: int, column: int
) -> str:
    digits = exact(weights[row, column])
    if mask is None or mask[row, column]:
        return f"weight {digits}"
    return f"weight {digits}, masked: this query may not see this key"


def _signed(value: np.float32) -> str:
    return exact(value) if value < 0 else f"+{exact(value)}"


def _check(
    weights: Float[ndarray, "query key"],
    queries: Sequence[str],
    keys: Sequence[str],
    mask: Bool[ndarray, "query key"] | None,
) -> None:
    if weights.shape != (len(queries), len(keys)):
        raise ValueError(f"{len(queries)} query and {len(keys)} key labels do not fit weights of shape {weights.shape}")
    if mask is not None and mask.shape != weights.shape:
        raise ValueError(f"a mask of shape {mask.shape} does not fit weights of shape {weights.shape}")
