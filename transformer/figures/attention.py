"""Attention as matrices: queries are rows, keys are columns, always."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, exact, hover_label
from transformer.figures.theme import Kind

AXIS_TITLES: dict[Kind, tuple[str, str]] = {
    "encoder_self": ("query: source token", "key: source token it looks at"),
    "decoder_self": ("query: token the decoder reads", "key: earlier token it looks at"),
    "cross": ("query: token the decoder reads", "key: source token it looks at"),
}
"""What stands at rows and columns."""

_NUMBERED_CELLS = 10
"""Up to this many rows and columns the numbers stand in the cells."""
_FULL_WIDTH = 560
"""Pixels that the cells share when there are many; a page is at least this wide."""


def head_heatmap(
    weights: Float[ndarray, "query key"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: Kind,
    mask: Bool[ndarray, "query key"] | None = None,
    dark: bool = False,
    clickable: bool = False,
    relative: bool = False,
) -> go.Figure:
    """One head's weights as a matrix of square cells; hovering names query and key and gives the exact float32.

    Masked cells (`mask` False) are struck through in a colour outside the scale. `relative` shades up to the head's
    largest weight instead of 1. `clickable` adds the invisible points that `st.plotly_chart(on_select=...)` needs:
    a selected point's x is the key's index, its y the query's.
    """
    _check(weights, queries, keys, mask)
    hover = [[_weight_text(weights, mask, row, column) for column in range(len(keys))] for row in range(len(queries))]
    trace = go.Heatmap(
        z=weights,
        zmin=0,
        zmax=float(weights.max()) or 1.0 if relative and weights.size else 1.0,
        colorscale=theme.sequential(dark),
        colorbar=_colour_bar("weight", dark),
        texttemplate="%{z:.2f}" if _numbered(weights) else None,
    )
    return _matrix(trace, hover, queries, keys, kind=kind, mask=mask, dark=dark, clickable=clickable)


def difference_heatmap(
    before: Float[ndarray, "query key"],
    after: Float[ndarray, "query key"],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: Kind,
    mask: Bool[ndarray, "query key"] | None = None,
    dark: bool = False,
    clickable: bool = False,
) -> go.Figure:
    """After minus before in each cell, around 0; ValueError where the two matrices are of different shape."""
    if before.shape != after.shape:
        raise ValueError(f"before is {before.shape} and after {after.shape}: cells can only be compared one to one")
    _check(before, queries, keys, mask)
    difference = after - before
    reach = float(np.abs(difference).max(initial=0.0)) or 1.0
    hover = [
        [
            f"{_signed(difference[row, column])}<br>before {exact(before[row, column])}"
            f"<br>after {exact(after[row, column])}"
            for column in range(len(keys))
        ]
        for row in range(len(queries))
    ]
    trace = go.Heatmap(
        z=difference,
        zmin=-reach,
        zmax=reach,
        colorscale=theme.diverging(dark),
        colorbar=_colour_bar("change", dark),
        texttemplate="%{z:+.2f}" if _numbered(difference) else None,
    )
    return _matrix(trace, hover, queries, keys, kind=kind, mask=mask, dark=dark, clickable=clickable)


def _matrix(
    trace: go.Heatmap,
    hover: list[list[str]],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: Kind,
    mask: Bool[ndarray, "query key"] | None,
    dark: bool,
    clickable: bool,
) -> go.Figure:
    colours = theme.palette(dark)
    n_queries, n_keys = len(queries), len(keys)
    cell = min(46.0, _FULL_WIDTH / max(n_keys, 1))
    gap = 1 if cell >= 12 else 0
    texts = [
        [
            f"query <b>{hover_label(query)}</b> (row {row + 1})<br>"
            f"key <b>{hover_label(key)}</b> (column {column + 1})<br>{hover[row][column]}"
            for column, key in enumerate(keys)
        ]
        for row, query in enumerate(queries)
    ]
    trace.update(
        x=np.arange(n_keys), y=np.arange(n_queries), customdata=texts, hovertemplate="%{customdata}<extra></extra>"
    )
    trace.update(xgap=gap, ygap=gap, textfont={"size": 12})
    fig = theme.apply(go.Figure(trace), dark)
    if mask is not None and not mask.all():
        _strike_masked(fig, mask, gap, dark)
    if clickable:
        _add_click_targets(fig, texts, cell)
    size = max(8.0, min(14.0, cell * 0.78))
    labels = {"size": size, "family": theme.MONOSPACE}
    key_labels, query_labels = axis_labels(keys, quiet=colours.quiet), axis_labels(queries, quiet=colours.quiet)
    lies = n_keys and max(map(len, keys)) * size * 0.62 < cell - 4
    row_title, column_title = AXIS_TITLES[kind]
    shared = {"showline": False, "ticks": "", "title": {"font": {"color": theme.kind_colour(kind, dark)}}}
    fig.update_xaxes(
        **shared,
        tickvals=np.arange(n_keys),
        ticktext=key_labels,
        tickfont=labels,
        tickangle=0 if lies else -90,
        side="top",
        range=[-0.5, n_keys - 0.5],
        constrain="domain",
        constraintoward="left",
        title_text=column_title,
    )
    fig.update_yaxes(
        **shared,
        tickvals=np.arange(n_queries),
        ticktext=query_labels,
        tickfont=labels,
        range=[n_queries - 0.5, -0.5],
        scaleanchor="x",
        constrain="domain",
        constraintoward="top",
        title_text=row_title,
    )
    head = 40 + (size * 1.4 if lies else max(map(len, keys), default=0) * size * 0.62)
    fig.update_layout(
        height=round(head + n_queries * cell + 16), margin={"l": 8, "r": 8, "t": 8, "b": 8, "autoexpand": True}
    )
    fig.update_xaxes(automargin=True)
    fig.update_yaxes(automargin=True)
    return fig


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
    rows, columns = np.nonzero(~mask)
    strokes = " ".join(
        f"M{column - 0.25},{row + 0.25}L{column + 0.25},{row - 0.25}"
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    )
    fig.add_shape(type="path", path=strokes, line={"color": colours.quiet, "width": 0.6}, opacity=0.7)


def _add_click_targets(fig: go.Figure, texts: list[list[str]], cell: float) -> None:
    n_queries, n_keys = len(texts), len(texts[0])
    rows, columns = np.mgrid[:n_queries, :n_keys]
    hidden = {"marker": {"opacity": 0}}
    fig.add_scatter(
        x=columns.ravel(),
        y=rows.ravel(),
        mode="markers",
        customdata=[text for row in texts for text in row],
        hovertemplate="%{customdata}<extra></extra>",
        marker={"symbol": "square", "size": cell, "opacity": 0},
        selected=hidden,
        unselected=hidden,
        showlegend=False,
    )


def _colour_bar(title: str, dark: bool) -> dict[str, object]:
    colours = theme.palette(dark)
    return {
        "title": {"text": title, "font": {"size": 12, "color": colours.quiet}},
        "tickfont": {"size": 12, "color": colours.quiet},
        "thickness": 10,
        "len": 0.6,
        "lenmode": "fraction",
        "outlinewidth": 0,
        "y": 1,
        "yanchor": "top",
    }


def _numbered(weights: Float[ndarray, "query key"]) -> bool:
    return max(weights.shape) <= _NUMBERED_CELLS


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
