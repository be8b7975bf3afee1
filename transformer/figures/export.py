"""Figures for files: Plotly twins of what pages draw on canvases, with a background, and one offline HTML file."""

import html
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray
from plotly.offline import get_plotlyjs

from transformer.figures import theme
from transformer.figures.axes import framed, note, panel
from transformer.figures.heatmap import Side, cells, check_labels, numbers_on, plain, square_axes, strokes, struck
from transformer.figures.labels import exact, hover_label
from transformer.figures.theme import on_paper
from transformer.model.kinds import AttentionKind, KindName

__all__ = ["html_document", "html_page", "matrix_figure", "on_paper", "overview_figure", "plot_html"]

_CELL, _LARGEST, _CHARACTER, _SIZE = 34, 620, 7.6, 12
"""Pixels: a cell, all cells of a side together, a character of a label; and the size of a label."""
_NUMBERED, _STRUCK = 28, 7
"""Pixels of a cell that has room for its number, and through which a stroke still shows."""
_THUMBNAIL, _GUTTER = 96, 12
"""Pixels of a head in the overview, and between two."""


def matrix_figure(
    values: Float[ndarray, "row column"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    kind: KindName,
    titles: tuple[str, str],
    quantity: str = "weight",
    top: float = 1.0,
    mask: Bool[ndarray, "row column"] | None = None,
    forbidden: Bool[ndarray, "row column"] | None = None,
    least: float = 0.0,
    off: bool = False,
    chosen: tuple[int, int] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws a matrix of square cells shaded from 0 to `top`; hovering gives each number exactly, masked cells are grey.

    Cells `forbidden` by a switch are crossed out. Values below `least` are not drawn. A head that is `off` has no
    colours. `chosen` frames the cell of that row and column.
    """
    check_labels(values, rows, columns)
    colours, scale = theme.palette(dark), theme.greys(dark) if off else theme.sequential(dark)
    colour = theme.kind_colour(kind, dark)
    crossed = np.zeros(values.shape, dtype=bool) if forbidden is None else forbidden
    masked = np.zeros(values.shape, dtype=bool) if mask is None else ~mask & ~crossed
    weak = ~masked & ~crossed & (values < least)
    states = np.select([crossed, masked, weak], [", forbidden by a switch", ", masked", ", not drawn"], "")
    drawn = np.where(crossed | masked | weak, np.nan, values)
    cell = max(6.0, min(_CELL, _LARGEST / max(values.shape)))
    texts = [
        [
            f"<b>{hover_label(row)}</b>, row {i}<br><b>{hover_label(column)}</b>, column {j}<br>{quantity} "
            f"{exact(values[i, j])}{states[i, j]}"
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(rows)
    ]
    numbers = numbers_on(drawn, scale, (0, top)) if cell >= _NUMBERED else None
    bar = {
        "title": {"text": f"{quantity}<br>not used" if off else quantity},
        **{"thickness": 10, "len": 0.6, "outlinewidth": 0, "tickfont": {"size": 11}},
    }
    gap = 1 if cell > 10 else 0
    traces = [
        cells(drawn, texts, scale=scale, limits=(0, top), numbers=numbers, size=11, gap=gap, hoverongaps=True)
        | {"showscale": True, "colorbar": bar}
    ]
    legend: list[str] = []
    shapes: list[dict[str, Any]] = []
    if masked.any():
        legend.append("╱ masked")
        shapes += struck(masked, dark) if cell > _STRUCK else []
    if crossed.any():
        legend.append("✕ forbidden by a switch")
        line = {"color": colour, "width": 1.75 if cell > 14 else 1}
        shapes.append({"type": "path", "path": strokes(crossed, crossed=True), "line": line})
    if weak.any():
        legend.append(f"blank: below {least:.3g}")
        traces.append(plain(weak, colours.background, gap=0))
    if chosen is not None:
        shapes.append(framed(*chosen, colour=colour))
    sides = Side.of_tokens(rows, titles[0], dark), Side.of_tokens(columns, titles[1], dark)
    size, across = min(_SIZE, cell * 0.9), sides[1].width * _CHARACTER
    lies = across < cell - 2
    left, above = sides[0].width * _CHARACTER + 44, (size * 1.3 if lies else across) + 48
    below = 24 + 15 * len(legend)
    states_named = note("<br>".join(legend), 0, 0, "left", "top", size=11, align="left", yshift=-6, borderpad=0)
    figure = theme.figure(
        traces,
        dark,
        **square_axes(*sides, size=size, colour=colours.quiet if off else colour, angle=0 if lies else -90, standoff=4),
        shapes=shapes,
        annotations=[states_named] if legend else [],
        width=round(left + cell * len(columns) + 96),
        height=round(above + cell * len(rows) + below),
        margin={"l": left, "r": 96, "t": above, "b": below},
        meta={"own_width": True},
        plot_bgcolor=colours.masked,
    )
    return on_paper(figure, dark)


def overview_figure(
    weights: Float[ndarray, "layer head query key"],
    *,
    kind: KindName,
    mask: Bool[ndarray, "layer query key"] | None = None,
    off: Collection[tuple[int, int]] = (),
    at_mean: Collection[tuple[int, int]] = (),
    dark: bool = False,
) -> go.Figure:
    """Draws every head of every layer, small: layers are rows of pictures, heads columns.

    Heads named in `off` or `at_mean`, each (layer, head), are grey, and struck out with that word.
    """
    n_layers, n_heads, n_queries, n_keys = weights.shape
    colours, left, above = theme.palette(dark), 64, 34
    tall = max(24.0, _THUMBNAIL * n_queries / max(n_queries, n_keys))
    wide = max(24.0, _THUMBNAIL * n_keys / max(n_queries, n_keys))
    inner = n_heads * (wide + _GUTTER) - _GUTTER, n_layers * (tall + _GUTTER) - _GUTTER
    replaced = {**dict.fromkeys(off, "off"), **dict.fromkeys(at_mean, "mean")}
    outline = {"showticklabels": False, "showline": True, "linecolor": colours.line, "mirror": True}
    traces, axes, shapes, notes = [], {}, [], []
    for layer, head in np.ndindex(n_layers, n_heads):
        end = panel(layer * n_heads + head + 1)
        x, y = head * (wide + _GUTTER) / inner[0], 1 - layer * (tall + _GUTTER) / inner[1]
        across, down = (x, min(1.0, x + wide / inner[0])), (max(0.0, y - tall / inner[1]), y)
        axes[f"xaxis{end}"] = {**outline, "domain": across, "anchor": f"y{end}"}
        axes[f"yaxis{end}"] = {**outline, "domain": down, "anchor": f"x{end}", "range": [n_queries - 0.5, -0.5]}
        shown = weights[layer, head] if mask is None else np.where(mask[layer], weights[layer, head], np.nan)
        scale = theme.greys(dark) if (layer, head) in replaced else theme.sequential(dark)
        says = f"layer {layer}, head {head}<br>row %{{y}}, column %{{x}}<br>%{{z:.9g}}<extra></extra>"
        traces.append(cells(shown, scale=scale, gap=0, end=end, hovertemplate=says))
        if word := replaced.get((layer, head)):
            ends = {"x0": across[0], "y0": down[0], "x1": across[1], "y1": down[1], "xref": "paper", "yref": "paper"}
            shapes.append({"type": "line", **ends, "line": {"color": colours.text, "width": 1.5}})
            struck_out = {"bgcolor": colours.background, "font": {"size": 11, "color": colours.text}}
            notes.append(note(word, sum(across) / 2, sum(down) / 2, "auto", "auto", **struck_out))
    for head in range(n_heads):
        middle = (head * (wide + _GUTTER) + wide / 2) / inner[0]
        notes.append(note(f"head {head}", middle, 1.0, "center", "bottom", size=11))
    for layer in range(n_layers):
        middle = 1 - (layer * (tall + _GUTTER) + tall / 2) / inner[1]
        notes.append(note(f"layer {layer}", 0.0, middle, "right", "middle", size=11, xshift=-6))
    figure = theme.figure(
        traces,
        dark,
        **axes,
        shapes=shapes,
        annotations=notes,
        width=round(left + inner[0] + 12),
        height=round(above + inner[1] + 12),
        margin={"l": left, "r": 12, "t": above, "b": 12, "autoexpand": False},
        plot_bgcolor=colours.masked,
        title={
            "text": AttentionKind(kind).label,
            "font": {"size": 13, "color": theme.kind_colour(kind, dark)},
            **{"x": 0, "y": 1, "yanchor": "top", "pad": {"t": 6, "l": 6}},
        },
    )
    return on_paper(figure, dark)


PLOTLY_FILE = "plotly.min.js"
"""The name of plotly.js where pages share it."""


def html_document(figure: go.Figure, *, title: str, said: str, heading: str = "", dark: bool = False) -> str:
    """Returns one file that draws the figure offline: plotly.js is inside. `heading` stands above it, `said` below."""
    above = f"<h1>{html.escape(heading)}</h1>\n" if heading else ""
    return html_page(f"{above}{plot_html(figure)}\n<p>{html.escape(said)}</p>", title=title, dark=dark)


def plot_html(figure: go.Figure) -> str:
    """Returns the figure as a part of a page that has plotly.js."""
    options = {"displaylogo": False, "responsive": False}
    return figure.to_html(full_html=False, include_plotlyjs=False, config=options, default_width="auto")


def html_page(body: str, *, title: str, dark: bool = False, plotly: str | None = None, style: str = "") -> str:
    """Returns a page in the lab's colours, with plotly.js inside it or, where `plotly` is its address, beside it."""
    colours = theme.palette(dark)
    script = (
        f"<script>{get_plotlyjs()}</script>" if plotly is None else f'<script src="{html.escape(plotly)}"></script>'
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n{script}\n"
        f"<style>body {{ width: fit-content; max-width: 100%; margin: 2rem auto; padding: 0 1rem; "
        f"color: {colours.text}; background: {colours.background}; "
        f"font: 16px/1.5 {theme.FONT.replace(chr(34), chr(39))}; }} h1 {{ font-size: 1.375rem; }} "
        f"p {{ max-width: 48rem; }} a {{ color: inherit; }}{style}</style>\n"
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
