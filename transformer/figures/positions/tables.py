"""Draws position tables: values, single dimensions, similarity, shifts, and the parts of scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import column_axis, monospace, note, on_axes, panel, row_axis, token_labels
from transformer.figures.heatmap import cells
from transformer.figures.labels import hover_label
from transformer.figures.lines import band, line
from transformer.figures.theme import run_colour

Table = Float[ndarray, "_ _"]
Matrix = Float[ndarray, "_ _"]

_GAP, _NARROW_GAP = 0.09, 0.02
"""Space between panels, as a share of the figure's width; the wider holds the second panel's axis."""
_HEIGHT = 420
LARGE = 40_000
"""Panels with at least so many cells are drawn as one picture."""


def tables_figure(
    tables: Sequence[Table], titles: Sequence[str], *, untrained_from: Sequence[int | None] = (), dark: bool = False
) -> go.Figure:
    """Draws tables side by side, position down and dimension across, on one scale around 0.

    `untrained_from` draws a line above the first row of a table that training never reached.
    """
    line_above = {"color": theme.palette(dark).text, "width": 1, "dash": "dot"}
    shapes = [
        {"type": "line", "x0": -0.5, "x1": table.shape[1] - 0.5, "y0": row - 0.5, "y1": row - 0.5, "line": line_above}
        | on_axes(panel(number), "ref")
        for number, (table, row) in enumerate(zip(tables, untrained_from, strict=False), start=1)
        if row is not None and row < len(table)
    ]
    return _panels(tables, titles, axes=("dimension", "position"), shapes=shapes, dark=dark)


def matrices_figure(
    matrices: Sequence[Matrix], titles: Sequence[str], *, axes: tuple[str, str] = ("position", "position"),
    dark: bool = False,
) -> go.Figure:  # fmt: skip
    """Draws square matrices side by side, rows from the top, on one scale around 0; `axes` names columns and rows."""
    return _panels(matrices, titles, axes=axes, dark=dark)


def dimensions_figure(curves: Sequence[Float[ndarray, " _"]], names: Sequence[str], *, dark: bool = False) -> go.Figure:
    """Draws one line for each dimension, over positions."""
    return _lines([np.arange(len(curve)) for curve in curves], curves, names, ("position", "value"), dark=dark)


def offsets_figure(
    means: Sequence[Float[ndarray, " _"]],
    lows: Sequence[Float[ndarray, " _"]],
    highs: Sequence[Float[ndarray, " _"]],
    names: Sequence[str],
    *,
    quantity: str,
    dark: bool = False,
) -> go.Figure:
    """Draws each table's mean similarity at each offset, with a band from the lowest to the highest pair."""
    offsets = [np.arange(len(mean)) for mean in means]
    fig = _lines(offsets, means, names, ("offset between positions", quantity), dark=dark)
    return fig.add_traces(
        [
            band(x, low, high, run_colour(index, dark), name=name)
            for index, (x, low, high, name) in enumerate(zip(offsets, lows, highs, names, strict=True))
        ]
    )


def errors_figure(
    positions: Sequence[Int[ndarray, " _"]],
    errors: Sequence[Float[ndarray, " _"]],
    names: Sequence[str],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws the largest error of a shifted row at each given position, on a log axis; errors of 0 are left out."""
    shown = [np.where(error > 0, error, np.nan) for error in errors]
    titles = ("position pos", "largest error of a dimension")
    fig = _lines(positions, shown, names, titles, form=".2e", mode="lines+markers", dark=dark)
    return fig.update_yaxes(type="log", exponentformat="power", dtick=2)


def parts_figure(
    parts: Sequence[Float[ndarray, "query key"]],
    titles: Sequence[str],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws the parts of one head's scores side by side on one scale around 0: queries are rows, keys are columns."""
    texts = [[f"query <b>{hover_label(q)}</b><br>key <b>{hover_label(k)}</b>" for k in keys] for q in queries]
    labelled = {"tickfont": monospace(11), "automargin": True}
    columns = column_axis(token_labels(keys, dark), tickangle=-90, constrain="domain") | labelled
    rows = row_axis(token_labels(queries, dark)) | labelled
    fig = _panels(parts, titles, texts=texts, axes=("key", "query"), gap=_NARROW_GAP, dark=dark)
    fig.update_xaxes(**columns, title_standoff=8)
    fig.update_yaxes(**rows, title_text="", showticklabels=False)
    first = {"showticklabels": True, "title": {"text": "query", "standoff": 8}}
    return fig.update_layout(yaxis=first, meta={"smallest_width": 170 * len(parts) + 80})


def _panels(
    panels: Sequence[Matrix],
    titles: Sequence[str],
    *,
    axes: tuple[str, str],
    texts: Sequence[Sequence[str]] | None = None,
    gap: float = _GAP,
    shapes: Sequence[dict[str, Any]] = (),
    dark: bool,
) -> go.Figure:
    """Draws matrices side by side on one scale around 0; `axes` names columns and rows."""
    reach = max((float(np.nan_to_num(np.abs(values)).max(initial=0.0)) for values in panels), default=0.0) or 1.0
    place = "%{customdata}" if texts is not None else f"{axes[1]} %{{y}}, {axes[0]} %{{x}}"
    width = (1 - gap * (len(panels) - 1)) / len(panels)
    traces, layout, notes = [], {}, []
    for index, (values, title) in enumerate(zip(panels, titles, strict=True)):
        end, left = panel(index + 1), index * (width + gap)
        smoothed = "fast" if values.size >= LARGE else False  # cells smaller than pixels, drawn as one picture
        says = {"hovertemplate": f"{place}<br>%{{z:.7g}}<extra></extra>"}
        trace = cells(values.astype(np.float32), texts, scale="coloraxis", gap=0, end=end, name=title, zsmooth=smoothed)
        traces.append(trace | says)
        across = {"domain": [left, left + width], "anchor": f"y{end}", "title": {"text": axes[0]}}
        down = {"anchor": f"x{end}", "autorange": "reversed", "title": {"text": axes[1]}}
        layout |= {f"xaxis{end}": across, f"yaxis{end}": down}
        notes.append(note(hover_label(title), left, 1, "left", "bottom", size=13, yshift=6))
    bar = {"thickness": 10, "outlinewidth": 0, "tickfont": {"color": theme.palette(dark).text}, "len": 0.8}
    return theme.figure(
        traces,
        dark,
        **layout,
        annotations=notes,
        shapes=shapes,
        coloraxis={"colorscale": theme.diverging(dark), "cmin": -reach, "cmax": reach, "colorbar": bar},
        height=_HEIGHT,
        margin={"l": 60, "r": 10, "t": 34, "b": 50},
        meta={"smallest_width": 300 * len(panels)},
    )


def _lines(
    xs: Sequence[ndarray],
    ys: Sequence[ndarray],
    names: Sequence[str],
    titles: tuple[str, str],
    *,
    form: str = ".4g",
    mode: str = "lines",
    dark: bool,
) -> go.Figure:
    """Draws a line in a colour of its own for each name; `titles` are those of the axes."""
    curves = [
        line(x, y, run_colour(index, dark), name=name, hovertemplate=f"%{{y:{form}}}", mode=mode)
        for index, (x, y, name) in enumerate(zip(xs, ys, names, strict=True))
    ]
    return theme.figure(
        curves,
        dark,
        xaxis={"title": {"text": titles[0]}, "showline": True, "automargin": True},
        yaxis={"title": {"text": titles[1]}, "showgrid": True, "automargin": True},
        height=340,
        hovermode="x unified",
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
    )
