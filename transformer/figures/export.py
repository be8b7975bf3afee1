"""Figures to take away: a page's picture as a Plotly figure on paper of its own, and as one file that needs no network.

What a page draws on a canvas has a figure here too, so that it can be saved with sharp lines.
"""

import html
from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.attention.matrix import frame, strokes
from transformer.figures.labels import axis_labels, exact, hover_label, label_width
from transformer.model.kinds import AttentionKind, KindName

_CELL, _LARGEST, _CHARACTER, _SIZE = 34, 620, 7.6, 12
"""Pixels: a cell, all cells of a side together, a character of a label; and the size of a label."""
_NUMBERED = 28
"""Pixels of a cell that has room for its number."""
_STRUCK = 7
"""Pixels of a cell through which a stroke still shows."""
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
    """A matrix of square cells shaded from 0 to `top`; hovering gives each number exactly, masked cells are grey.

    Of these, cells `forbidden` by a switch are crossed out. Values below `least` are not drawn. What is `off`, so that
    nothing of it goes any further, has no colours. `chosen` frames the cell of that row and column.
    """
    if values.shape != (len(rows), len(columns)):
        raise ValueError(f"{len(rows)} row and {len(columns)} column labels do not fit values of {values.shape}")
    colours, scale = theme.palette(dark), theme.greys(dark) if off else theme.sequential(dark)
    crossed = np.zeros(values.shape, dtype=bool) if forbidden is None else forbidden
    allowed = ~crossed if mask is None else mask & ~crossed
    weak = allowed & (values < least)
    drawn = allowed & ~weak
    states = np.select([crossed, ~allowed, weak], [", forbidden by a switch", ", masked", ", not drawn"], "")
    cell = max(6.0, min(_CELL, _LARGEST / max(values.shape)))
    numbered = cell >= _NUMBERED
    fig = theme.apply(go.Figure(), dark)
    fig.add_heatmap(
        z=np.where(drawn, values, np.nan),
        zmin=0,
        zmax=top,
        colorscale=scale,
        xgap=1 if cell > 10 else 0,
        ygap=1 if cell > 10 else 0,
        text=_numbers(values, drawn, top, scale) if numbered else None,
        texttemplate="%{text}" if numbered else None,
        textfont={"size": 11},
        customdata=[
            [
                f"<b>{hover_label(row)}</b>, row {i}<br><b>{hover_label(column)}</b>, column {j}<br>{quantity} "
                f"{exact(values[i, j])}{states[i, j]}"
                for j, column in enumerate(columns)
            ]
            for i, row in enumerate(rows)
        ],
        hovertemplate="%{customdata}<extra></extra>",
        hoverongaps=True,
        colorbar={
            "title": {"text": f"{quantity}{'<br>not used' * off}"},
            "thickness": 10,
            "len": 0.6,
            "outlinewidth": 0,
            "tickfont": {"size": 11},
        },
    )
    if weak.any():
        blank = [[0, colours.background], [1, colours.background]]
        fig.add_heatmap(z=np.where(weak, 1.0, np.nan), colorscale=blank, showscale=False, hoverinfo="skip")
    masked, thick = ~allowed & ~crossed, 1.75 if cell > 14 else 1
    if masked.any() and cell > _STRUCK:
        line = {"color": colours.quiet, "width": 0.6}
        fig.add_shape(type="path", path=strokes(masked), line=line, opacity=0.7)
    if crossed.any():
        line = {"color": theme.kind_colour(kind, dark), "width": thick}
        fig.add_shape(type="path", path=strokes(crossed, crossed=True), line=line)
    if chosen is not None:
        frame(fig, chosen, theme.kind_colour(kind, dark))
    left, above = label_width(rows) * _CHARACTER + 44, label_width(columns) * _CHARACTER + 48
    font = {"family": theme.MONOSPACE, "size": min(_SIZE, cell * 0.9)}
    bare = {"showline": False, "ticks": "", "ticklabelstandoff": 4, "tickfont": font}
    shades = {"quiet": colours.quiet, "faint": colours.faint}
    title = {"font": {"color": colours.quiet if off else theme.kind_colour(kind, dark), "size": 13}, "standoff": 8}
    fig.update_xaxes(
        **bare,
        side="top",
        tickangle=-90,
        range=[-0.5, len(columns) - 0.5],
        constrain="domain",
        constraintoward="left",
        tickvals=list(range(len(columns))),
        ticktext=axis_labels(columns, **shades),
        title={"text": titles[1], **title},
    )
    fig.update_yaxes(
        **bare,
        range=[len(rows) - 0.5, -0.5],
        scaleanchor="x",
        constrain="domain",
        constraintoward="top",
        tickvals=list(range(len(rows))),
        ticktext=axis_labels(rows, **shades),
        title={"text": titles[0], **title},
    )
    below = _say_states(fig, masked, crossed, f"below {least:.3g}" * bool(weak.any()), colours.quiet)
    return on_paper(
        fig.update_layout(
            width=round(left + cell * len(columns) + 96),
            height=round(above + cell * len(rows) + below),
            margin={"l": left, "r": 96, "t": above, "b": below},
            plot_bgcolor=colours.masked,
        ),
        dark,
    )


def overview_figure(
    weights: Float[ndarray, "layer head query key"],
    *,
    kind: KindName,
    mask: Bool[ndarray, "layer query key"] | None = None,
    off: Collection[tuple[int, int]] = (),
    at_mean: Collection[tuple[int, int]] = (),
    dark: bool = False,
) -> go.Figure:
    """Every head of every layer, small: layers are rows of pictures, heads columns.

    Heads named in `off` or `at_mean`, each (layer, head), are grey, and struck out with that word.
    """
    n_layers, n_heads, n_queries, n_keys = weights.shape
    colours, left, above = theme.palette(dark), 64, 34
    tall = max(24.0, _THUMBNAIL * n_queries / max(n_queries, n_keys))
    wide = max(24.0, _THUMBNAIL * n_keys / max(n_queries, n_keys))
    inner = n_heads * (wide + _GUTTER) - _GUTTER, n_layers * (tall + _GUTTER) - _GUTTER
    fig = theme.apply(go.Figure(), dark)
    axes: dict[str, object] = {}
    replaced = {**dict.fromkeys(off, "off"), **dict.fromkeys(at_mean, "mean")}
    bare = {"showticklabels": False, "ticks": "", "linecolor": colours.line, "mirror": True, "showgrid": False}
    for layer in range(n_layers):
        for head in range(n_heads):
            number = layer * n_heads + head + 1
            name = "" if number == 1 else str(number)
            x, y = head * (wide + _GUTTER) / inner[0], 1 - layer * (tall + _GUTTER) / inner[1]
            across, down = [x, min(1.0, x + wide / inner[0])], [max(0.0, y - tall / inner[1]), y]
            axes[f"xaxis{name}"] = {**bare, "domain": across, "anchor": f"y{name}"}
            axes[f"yaxis{name}"] = {**bare, "domain": down, "anchor": f"x{name}", "range": [n_queries - 0.5, -0.5]}
            shown = weights[layer, head] if mask is None else np.where(mask[layer], weights[layer, head], np.nan)
            fig.add_heatmap(
                z=shown,
                zmin=0,
                zmax=1,
                colorscale=theme.greys(dark) if (layer, head) in replaced else theme.sequential(dark),
                showscale=False,
                xaxis=f"x{name}",
                yaxis=f"y{name}",
                hovertemplate=f"layer {layer}, head {head}<br>row %{{y}}, column %{{x}}<br>%{{z:.9g}}<extra></extra>",
            )
            if word := replaced.get((layer, head)):
                _strike_out(fig, word, (across, down), dark)
    fig.update_layout(axes)
    for head in range(n_heads):
        _say(fig, f"head {head}", (head * (wide + _GUTTER) + wide / 2) / inner[0], 1.0, "bottom", colours.quiet)
    for layer in range(n_layers):
        _say(fig, f"layer {layer}", 0.0, 1 - (layer * (tall + _GUTTER) + tall / 2) / inner[1], "right", colours.quiet)
    fig.update_layout(
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
    return on_paper(fig, dark)


def on_paper(fig: go.Figure, dark: bool = False) -> go.Figure:
    """The figure with the theme's background behind it, which on a page is the page's own."""
    return fig.update_layout(paper_bgcolor=theme.palette(dark).background)


def html_document(figure: go.Figure, *, title: str, said: str, dark: bool = False) -> str:
    """One file that draws the figure with no network: plotly.js is inside. `said` stands below it."""
    colours = theme.palette(dark)
    drawn = figure.to_html(
        full_html=False, include_plotlyjs=True, config={"displaylogo": False, "responsive": False}, default_width="auto"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>body {{ margin: 2rem; background: {colours.background}; color: {colours.text}; "
        f"font: 16px/1.5 {theme.FONT.replace(chr(34), chr(39))}; }} p {{ max-width: 48rem; }}</style>\n"
        f"</head>\n<body>\n{drawn}\n<p>{html.escape(said)}</p>\n</body>\n</html>\n"
    )


def _numbers(
    values: Float[ndarray, "row column"], allowed: Bool[ndarray, "row column"], top: float, scale: theme.Scale
) -> list[list[str]]:
    def number(value: float, is_allowed: bool) -> str:
        text = "" if not is_allowed else "0" if abs(value) < 0.005 else f"{value:.2f}"
        return f'<span style="color:{theme.ink_on(scale, value / top)}">{text}</span>'

    return [
        [number(float(value), bool(open_)) for value, open_ in zip(row, may, strict=True)]
        for row, may in zip(values, allowed, strict=True)
    ]


def _say_states(fig: go.Figure, masked: ndarray, crossed: ndarray, weak: str, colour: str) -> int:
    """Names what is no colour of the scale, below the cells; the pixels that this takes."""
    said = ["╱ masked"] * bool(masked.any()) + ["✕ forbidden by a switch"] * bool(crossed.any())
    said += [f"blank: {weak}"] * bool(weak)
    if said:
        fig.add_annotation(
            text="<br>".join(said), x=0, y=0, xref="paper", yref="paper", showarrow=False, xanchor="left", align="left",
            yanchor="top", yshift=-6, borderpad=0, font={"size": 11, "color": colour},
        )  # fmt: skip
    return 24 + 15 * len(said)


def _strike_out(fig: go.Figure, word: str, domain: tuple[list[float], list[float]], dark: bool) -> None:
    (left, right), (low, high) = domain
    colours, on = theme.palette(dark), {"xref": "paper", "yref": "paper"}
    fig.add_shape(type="line", x0=left, y0=low, x1=right, y1=high, **on, line={"color": colours.text, "width": 1.5})
    fig.add_annotation(
        text=word, x=(left + right) / 2, y=(low + high) / 2, **on, showarrow=False, bgcolor=colours.background,
        font={"size": 11, "color": colours.text}, borderpad=1,
    )  # fmt: skip


def _say(fig: go.Figure, text: str, x: float, y: float, where: str, colour: str) -> None:
    anchors = (
        {"xanchor": "center", "yanchor": "bottom"} if where == "bottom" else {"xanchor": "right", "yanchor": "middle"}
    )
    fig.add_annotation(
        text=text, x=x, y=y, xref="paper", yref="paper", showarrow=False, font={"size": 11, "color": colour},
        xshift=-6 if where == "right" else 0, **anchors,
    )  # fmt: skip
