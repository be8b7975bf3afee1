"""What switches or other models did: to each token and its probability, to each step's distribution, to a head."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.attention.matrix import ROUNDING, difference_heatmap
from transformer.figures.export import on_paper
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.model.kinds import KindName

WIDTH = 460
"""Pixels that each of the two figures is made for, so that both stand side by side."""
_CELL, _LABEL = 6.5, 9.0
"""Pixels of a matrix: of a cell and between two labels, at least."""
_SEEN = 0.001
"""A smaller move of a probability has no colour."""
_ROW, _COLUMN, _ABOVE = 24, 120, 34
"""Pixels of two outputs side by side: of a place, of the narrowest side, of what they are called."""
_TOKEN, _DENSE, _LEFT, _CHARACTER = 24, 9, 52, 7.8
"""Pixels: of a token's column, where there is room and where there is none, of the axis beside them, of a character."""


def probabilities_figure(
    tokens: Sequence[str],
    before: Float[ndarray, "_"],
    after: Float[ndarray, "_"],
    kl_divergence: Float[ndarray, "_"],
    *,
    dark: bool = False,
) -> go.Figure:
    """Above, each token's probability without (open) and with the switches (filled), blue where it fell and vermilion
    where it rose; below, the KL divergence of that step's whole distribution in nats."""
    if not len(tokens) == len(before) == len(after) == len(kl_divergence):
        raise ValueError(f"{len(tokens)} tokens need as many probabilities and divergences")
    colours, scale = theme.palette(dark), theme.diverging(dark)
    fell, rose = scale[1][1], scale[-2][1]
    steps = list(range(len(tokens)))
    moves = [float(q - p) for p, q in zip(before, after, strict=True)]
    paints = [colours.quiet if abs(move) < _SEEN else rose if move > 0 else fell for move in moves]
    notes = [
        f"<b>{hover_label(token)}</b>, step {step}<br>probability {p:.6g} before, {q:.6g} after ({q - p:+.3g})"
        f"<br>KL divergence {kl:.4g} nats"
        for step, token, p, q, kl in zip(steps, tokens, before, after, kl_divergence, strict=True)
    ]
    fig = theme.apply(go.Figure(), dark)
    for paint in dict.fromkeys(paints):
        x, y = [], []
        for step in steps:
            if paints[step] == paint:
                x += [step, step, None]
                y += [before[step], after[step], None]
        fig.add_scatter(x=x, y=y, mode="lines", line={"color": paint, "width": 2}, hoverinfo="skip", showlegend=False)
    shared = {"mode": "markers", "customdata": notes, "hovertemplate": "%{customdata}<extra></extra>"}
    hollow = {
        "symbol": "circle",
        "size": 9 if _column(len(tokens)) > 12 else 6,
        "color": colours.background,
        "line": {"color": colours.quiet, "width": 1.5},
    }
    fig.add_scatter(x=steps, y=before, name="before", marker=hollow, **shared)
    fig.add_scatter(x=steps, y=after, name="after", marker={"size": hollow["size"], "color": paints}, **shared)
    fig.add_bar(
        x=steps, y=kl_divergence, yaxis="y2", width=0.5, marker={"color": colours.quiet}, showlegend=False,
        customdata=notes, hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    return _lay_out(fig, tokens, float(kl_divergence.max(initial=0.0)), dark)


def _column(n_tokens: int) -> float:
    """Pixels of a token's column: as many as let all of them stand in `WIDTH`, down to what a label needs."""
    return min(_TOKEN, max(_DENSE, (WIDTH - _LEFT - 8) / max(n_tokens, 1)))


def _lay_out(fig: go.Figure, tokens: Sequence[str], highest_kl: float, dark: bool) -> go.Figure:
    colours = theme.palette(dark)
    plain = {"zeroline": False, "tickfont": {"color": colours.text, "size": 12}, "fixedrange": True, "showline": False}
    title = {"font": {"size": 12, "color": colours.quiet}, "standoff": 6}
    deep = label_width(tokens) * _CHARACTER + 16
    fig.update_xaxes(
        tickvals=list(range(len(tokens))), range=[-0.6, len(tokens) - 0.4], tickangle=-90, fixedrange=True, anchor="y2",
        ticktext=axis_labels(tokens, quiet=colours.quiet, faint=colours.faint), ticks="",
        tickfont={"family": theme.MONOSPACE, "size": 12 if _column(len(tokens)) > 12 else 9},
    )  # fmt: skip
    grid = {"showgrid": True, "gridcolor": colours.line, **plain}
    top = highest_kl * 1.1 if highest_kl > ROUNDING else 1.0
    shares = {"domain": [0.42, 1], "range": [-0.04, 1.04], "tickvals": [0, 0.5, 1]}
    return fig.update_layout(
        yaxis={**grid, **shares, "title": {"text": "probability", **title}},
        yaxis2={**grid, "domain": [0, 0.3], "range": [0, top], "nticks": 3, "title": {"text": "KL, nats", **title}},
        height=round(262 + deep),
        margin={"l": _LEFT, "r": 8, "t": 30, "b": deep},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12}},
        dragmode=False,
        meta={"smallest_width": _LEFT + 8 + math.floor(_column(len(tokens)) * len(tokens))},
    )  # fmt: skip


def aligned_figure(
    tokens: tuple[Sequence[str], Sequence[str]],
    probabilities: tuple[Float[ndarray, "_"], Float[ndarray, "_"]],
    aligned: Sequence[tuple[int | None, int | None]],
    *,
    names: tuple[str, str],
    dark: bool = False,
) -> go.Figure:
    """Two outputs down the page, what stands for what side by side, shaded by probability; what differs is framed."""
    colours, scale = theme.palette(dark), theme.sequential(dark)
    z = np.full((len(aligned), 2), np.nan)
    text = [["", ""] for _ in aligned]
    notes = [["", ""] for _ in aligned]
    fig = theme.apply(go.Figure(), dark)
    for place, pair in enumerate(aligned):
        for side, at in enumerate(pair):
            if at is None:
                continue
            z[place, side] = value = float(probabilities[side][at])
            label = hover_label(tokens[side][at])
            text[place][side] = f'<span style="color:{theme.ink_on(scale, value)}">{label}  {value:.3f}</span>'
            notes[place][side] = f"<b>{label}</b>, step {at}<br>probability {value:.6g}"
        i, j = pair
        if i is None or j is None or tokens[0][i] != tokens[1][j]:
            corners = {"x0": -0.5, "x1": 1.5, "y0": place - 0.5, "y1": place + 0.5}
            fig.add_shape(type="rect", **corners, line={"color": theme.kind_colour("cross", dark), "width": 2})
    hidden = {"zmin": 0, "zmax": 1, "colorscale": scale, "showscale": False, "hoverongaps": False, "xgap": 2, "ygap": 1}
    fig.add_heatmap(
        z=z, **hidden, text=text, texttemplate="%{text}", textfont={"family": theme.MONOSPACE, "size": 12},
        customdata=notes, hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    bare = {"showline": False, "ticks": "", "showgrid": False, "zeroline": False, "fixedrange": True}
    fig.update_xaxes(
        **bare, side="top", tickvals=[0, 1], ticktext=[hover_label(name) for name in names], range=[-0.5, 1.5]
    )
    fig.update_yaxes(**bare, showticklabels=False, range=[len(aligned) - 0.5, -0.5])
    longest = max(label_width([*tokens[0], *tokens[1]]) + 8, *map(len, names))
    return on_paper(
        fig.update_layout(
            width=round(32 + 2 * max(_COLUMN, longest * _CHARACTER)),
            height=_ABOVE + 16 + _ROW * len(aligned),
            margin={"l": 16, "r": 16, "t": _ABOVE, "b": 16},
            plot_bgcolor=colours.background,
        ),
        dark,
    )


def difference_figure(
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
    """`difference_heatmap`, after minus before around 0, made for a column of `WIDTH` pixels."""
    fig = difference_heatmap(before, after, queries, keys, kind=kind, mask=mask, names=names, dark=dark)
    return for_column(fig, len(queries), len(keys))


def for_column(fig: go.Figure, n_queries: int, n_keys: int) -> go.Figure:
    """A matrix of square cells brought to a column of `WIDTH` pixels, its labels with it.

    In a narrower window, such as a phone's, its cells shrink until its labels would touch; `layout.meta["squares"]`
    tells `scrolling_figure` how much lower it then is.
    """
    layout: Any = fig.layout
    margin = layout.margin
    drawn = (layout.height - margin.t - margin.b) / max(n_queries, 1)
    cell = min(drawn, max(_CELL, (WIDTH - margin.l - margin.r) / max(n_keys, 1)))
    size = {"size": max(8.0, min(14.0, cell * 0.72))}
    every = math.ceil(_LABEL / cell)  # labels stay apart; hovering names each token
    for axis in (layout.xaxis, layout.yaxis):
        axis.update(tickfont=size, tickvals=axis.tickvals[::every], ticktext=axis.ticktext[::every])
    squares = {"rows": n_queries, "columns": n_keys, "beside": margin.l + margin.r, "above": margin.t + margin.b}
    smallest = margin.l + margin.r + min(cell, size["size"] / every) * n_keys
    return fig.update_layout(
        height=round(margin.t + margin.b + cell * n_queries),
        meta={"smallest_width": round(smallest), "squares": squares},
    )
