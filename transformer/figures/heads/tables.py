"""Maps of all heads at once: layers and heads, how alike they are; and what hiding each source token costs."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.heads.labels import Sublayer, head_name
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.model.kinds import KindName

_CELL, _NUMBERED = 46.0, 36.0
"""Pixels of a cell at most, and those from which its number fits into it."""
_WIDTH = 620.0
"""Pixels that the cells share where there are many."""
_EFFECT_WIDTH = 440.0
_NUMBERED_BRIEFLY = 26.0
_CHARACTER = 0.6
_BAR_WIDTH = 120


def head_map(
    values: Float[ndarray, "block head"],
    sublayers: Sequence[Sublayer],
    hover: Sequence[Sequence[str]] | None = None,
    *,
    quantity: str,
    limits: tuple[float, float],
    diverging: bool = False,
    chosen: tuple[int, int] | None = None,
    dark: bool = False,
) -> go.Figure:
    """A cell for each head, blocks of attention being rows; NaN leaves a cell empty. A selected point's x is the head,
    its y the row. `diverging` centres the colours on 0. Without `hover` a cell says its number.
    """
    hover = [[f"{quantity} {value:.6g}" for value in row] for row in values.tolist()] if hover is None else hover
    _fit(values, len(sublayers), len(hover))
    scale = theme.diverging(dark) if diverging else theme.sequential(dark)
    columns = [str(head) for head in range(values.shape[1])]
    rows = [
        f'<span style="color:{theme.kind_colour(sublayer.kind, dark)}">{sublayer.name}</span>' for sublayer in sublayers
    ]
    texts = [
        [f"<b>{sublayer.name} · head {head}</b><br>{line[head]}" for head in range(values.shape[1])]
        for sublayer, line in zip(sublayers, hover, strict=True)
    ]
    fig = _cells(values, texts, scale, limits, dark)
    _clickable(fig, values.shape, texts)
    if chosen is not None:
        _frame(fig, chosen, theme.kind_colour(sublayers[chosen[0]].kind, dark))
    _axes(
        fig,
        rows,
        columns,
        max(len(sublayer.name) for sublayer in sublayers),
        1,
        dark,
        row_title="",
        column_title="head",
    )
    return _legend(fig, quantity, dark)


def similarity_map(
    distances: Float[ndarray, "head head"],
    names: Sequence[str],
    *,
    kind: KindName,
    sizes: Sequence[int],
    dark: bool = False,
) -> go.Figure:
    """The distance of every two heads, 0 dark to 1 light; heads stand group by group, `sizes` says how many in each."""
    _fit(distances, len(names), len(names))
    texts = [
        [f"<b>{a}</b> and <b>{b}</b><br>distance {distances[i, j]:.3f}" for j, b in enumerate(names)]
        for i, a in enumerate(names)
    ]
    fig = _cells(distances, texts, theme.distances(dark), (0.0, 1.0), dark)
    start = 0
    for size in sizes:
        if size > 1:
            corners = {"x0": start - 0.5, "x1": start + size - 0.5, "y0": start - 0.5, "y1": start + size - 0.5}
            fig.add_shape(type="rect", **corners, line={"color": theme.kind_colour(kind, dark), "width": 2.5})
        start += size
    longest = max(map(len, names))
    _axes(fig, names, names, longest, longest, dark, row_title="", column_title="layer·head")
    return _legend(fig, "distance", dark)


def effect_map(
    effect: Float[ndarray, "target source"], targets: Sequence[str], sources: Sequence[str], *, dark: bool = False
) -> go.Figure:
    """What each output token's log-probability loses without each source token: vermilion where it loses, blue where it
    gains."""
    _fit(effect, len(targets), len(targets))
    if effect.shape[1] != len(sources):
        raise ValueError(f"{len(sources)} source labels do not fit effects of {effect.shape[1]} source tokens")
    reach = float(np.abs(effect).max(initial=0.0)) or 1.0
    texts = [
        [
            f"without <b>{hover_label(source)}</b><br><b>{hover_label(target)}</b> {loses(effect[row, column])}"
            for column, source in enumerate(sources)
        ]
        for row, target in enumerate(targets)
    ]
    numbers = [["" if abs(value) < 0.05 else f"{value:.1f}" for value in row] for row in effect.tolist()]
    fig = _cells(effect, texts, theme.diverging(dark), (-reach, reach), dark, width=_EFFECT_WIDTH, numbers=numbers)
    colours = theme.palette(dark)
    rows, columns = (axis_labels(side, quiet=colours.quiet, faint=colours.faint) for side in (targets, sources))
    widths = label_width(targets), label_width(sources)
    _axes(
        fig,
        rows,
        columns,
        *widths,
        dark,
        row_title="output token",
        column_title="source token that is hidden",
        width=_EFFECT_WIDTH,
    )
    return _legend(fig, "nats lost", dark)


def column_table(
    values: Float[ndarray, "head column"],
    heads: Sequence[str],
    columns: Sequence[str],
    *,
    quantity: str,
    limits: tuple[float, float] = (0.0, 1.0),
    dark: bool = False,
) -> go.Figure:
    """A row for each head (by its address), a column for each quantity; NaN leaves a cell empty."""
    _fit(values, len(heads), len(heads))
    names = [head_name(head) for head in heads]
    texts = [
        [f"<b>{name}</b><br>{column}: {value:.6g}" for column, value in zip(columns, line, strict=True)]
        for name, line in zip(names, values.tolist(), strict=True)
    ]
    scale = theme.diverging(dark) if limits[0] < 0 else theme.sequential(dark)
    fig = _cells(values, texts, scale, limits, dark)
    longest = max(map(len, names)), max(map(len, columns))
    _axes(fig, names, columns, *longest, dark, row_title="", column_title="")
    return _legend(fig, quantity, dark)


def _cells(
    values: Float[ndarray, "row column"],
    texts: list[list[str]],
    scale: theme.Scale,
    limits: tuple[float, float],
    dark: bool,
    *,
    width: float = _WIDTH,
    numbers: list[list[str]] | None = None,
) -> go.Figure:
    """The cells with a number in each where there is room; `numbers` says which, else two decimals everywhere."""
    cell = _cell(values.shape[1], width)
    room = _NUMBERED if numbers is None else _NUMBERED_BRIEFLY
    written = numbers or [[_short(value) for value in row] for row in values.tolist()]
    texts_in_ink = [
        [_inked(text, value, scale, limits) for text, value in zip(line, row, strict=True)]
        for line, row in zip(written, values.tolist(), strict=True)
    ]
    trace = go.Heatmap(
        z=values,
        x=np.arange(values.shape[1]),
        y=np.arange(values.shape[0]),
        zmin=limits[0],
        zmax=limits[1],
        colorscale=scale,
        colorbar=_colour_bar(limits, dark),
        text=texts_in_ink if cell >= room else None,
        texttemplate="%{text}" if cell >= room else None,
        textfont={"size": 12},
        xgap=1 if cell > 12 else 0,
        ygap=1 if cell > 12 else 0,
        customdata=texts,
        hovertemplate="%{customdata}<extra></extra>",
        hoverongaps=False,
    )
    return theme.apply(go.Figure(trace), dark)


def _clickable(fig: go.Figure, shape: tuple[int, ...], texts: list[list[str]]) -> None:
    """Invisible points above the cells: heatmaps report no clicks."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    hidden = {"marker": {"opacity": 0}}
    fig.add_scatter(
        x=columns.ravel(),
        y=rows.ravel(),
        mode="markers",
        marker={"symbol": "square", "size": _cell(shape[1]), "opacity": 0},
        selected=hidden,
        unselected=hidden,
        customdata=[text for row in texts for text in row],
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )


def _axes(
    fig: go.Figure,
    rows: Sequence[str],
    columns: Sequence[str],
    row_width: int,
    column_width: int,
    dark: bool,
    *,
    row_title: str,
    column_title: str,
    width: float = _WIDTH,
) -> None:
    """Square cells from the upper left corner, with room for exactly these labels."""
    cell = _cell(len(columns), width)
    size = max(8.0, min(13.0, cell * 0.8))
    widths = [width * size * _CHARACTER for width in (row_width, column_width)]
    lies = widths[1] < cell - 4
    height = size * 1.3 if lies else widths[1] + 6
    shared = {"showline": False, "ticks": "", "ticklabelstandoff": 6, "constrain": "domain"}
    font = {"size": size, "family": theme.MONOSPACE}
    title = {"font": {"color": theme.palette(dark).quiet, "size": 12}, "standoff": 6}
    fig.update_xaxes(
        **shared,
        tickfont=font,
        tickvals=np.arange(len(columns)),
        ticktext=list(columns),
        tickangle=0 if lies else -90,
        side="top",
        range=[-0.5, len(columns) - 0.5],
        constraintoward="left",
        title={"text": column_title, **title},
    )
    fig.update_yaxes(
        **shared,
        tickfont=font,
        tickvals=np.arange(len(rows)),
        ticktext=list(rows),
        range=[len(rows) - 0.5, -0.5],
        scaleanchor="x",
        constraintoward="top",
        title={"text": row_title, **title},
    )
    top, left = 66 + height, 18 + widths[0] + 24 * bool(row_title)
    fig.update_layout(
        height=round(top + len(rows) * cell + 12),
        margin={"l": left, "r": 8, "t": top, "b": 12, "autoexpand": False},
        meta={"smallest_width": round(left + max(len(columns) * min(cell, max(size * 1.15, 26)), 240) + 8)},
    )


def _legend(fig: go.Figure, quantity: str, dark: bool) -> go.Figure:
    """The same with what the colours stand for written beside their bar."""
    top = fig.layout.margin.t  # pyright: ignore[reportAttributeAccessIssue]
    fig.add_annotation(
        text=quantity,
        **{"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xshift": _BAR_WIDTH + 26, "yshift": top + 4},
        **{"xanchor": "left", "yanchor": "top", "showarrow": False, "borderpad": 0},
        font={"size": 12, "color": theme.palette(dark).quiet},
    )
    return fig


def _colour_bar(limits: tuple[float, float], dark: bool) -> dict[str, object]:
    ticks = sorted({limits[0], 0.0, limits[1]})
    return {
        "tickfont": {"size": 12, "color": theme.palette(dark).quiet},
        "tickvals": ticks,
        "ticktext": [typeset(f"{tick:+.2g}" if limits[0] < 0 < tick else f"{tick:.2g}") for tick in ticks],
        "orientation": "h",
        "thickness": 8,
        **{"len": _BAR_WIDTH, "lenmode": "pixels", "outlinewidth": 0, "ypad": 0, "xpad": 0},
        **{"x": 0, "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"},
    }


def _frame(fig: go.Figure, cell: tuple[int, int], colour: str) -> None:
    row, column = cell
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    fig.add_shape(type="rect", **corners, line={"color": colour, "width": 2.5})


def _cell(n_columns: int, width: float = _WIDTH) -> float:
    return min(_CELL, width / max(n_columns, 1))


def _short(value: float) -> str:
    if math.isnan(value):
        return ""
    if abs(value) < 0.005:
        return "0"
    return typeset(f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}")


def _inked(text: str, value: float, scale: theme.Scale, limits: tuple[float, float]) -> str:
    """The number in a colour that stands out on its cell."""
    if not text:
        return ""
    position = (value - limits[0]) / (limits[1] - limits[0])
    return f'<span style="color:{theme.ink_on(scale, position)}">{typeset(text)}</span>'


def loses(nats: float) -> str:
    """As in "loses 2 nats"; a negative loss is a gain."""
    return f"loses {nats:.3g} nats" if nats >= 0 else f"gains {-nats:.3g} nats"


def typeset(number: str) -> str:
    """With a minus in place of a hyphen."""
    return number.replace("-", "\u2212")


def _fit(values: Float[ndarray, "row column"], n_rows: int, n_hover: int) -> None:
    if values.shape[0] != n_rows or n_hover != n_rows:
        raise ValueError(f"{n_rows} row labels and {n_hover} rows of texts do not fit values of shape {values.shape}")
