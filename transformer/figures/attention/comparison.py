"""Changes caused by switches or another model: of each token's probability, each step's distribution, and a head."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.attention.matrix import ROUNDING, WIDTH
from transformer.figures.axes import column_axis, framed, hover, monospace, token_labels
from transformer.figures.heatmap import cells, numbers_on
from transformer.figures.labels import hover_label, label_width

_SEEN = 0.001
"""A smaller move of a probability has no colour."""
_ROW, _COLUMN, _ABOVE = 24, 120, 34
"""Pixels of two outputs side by side: a row, the narrowest side, the room above for their names."""
_TOKEN, _DENSE, _LEFT, _CHARACTER = 24, 9, 52, 7.8
"""Pixels: a token's column where there is room and where there is none, the axis beside them, a character."""


def probabilities_figure(
    tokens: Sequence[str],
    before: Float[ndarray, " _"],
    after: Float[ndarray, " _"],
    kl_divergence: Float[ndarray, " _"],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws above each token's probability without (open) and with the switches (filled), blue where it fell and
    vermilion where it rose; below, the KL divergence of that step's whole distribution in nats."""
    if not len(tokens) == len(before) == len(after) == len(kl_divergence):
        raise ValueError(f"{len(tokens)} tokens need as many probabilities and divergences")
    colours, scale = theme.palette(dark), theme.diverging(dark)
    fell, rose = scale[1][1], scale[-2][1]
    steps = list(range(len(tokens)))
    moves = [float(q - p) for p, q in zip(before, after, strict=True)]
    paints = [colours.quiet if abs(move) < _SEEN else rose if move > 0 else fell for move in moves]
    notes = hover(
        [
            f"<b>{hover_label(token)}</b>, step {step}<br>probability {p:.6g} before, {q:.6g} after ({q - p:+.3g})"
            f"<br>KL divergence {kl:.4g} nats"
            for step, token, p, q, kl in zip(steps, tokens, before, after, kl_divergence, strict=True)
        ]
    )
    traces: list[dict[str, Any]] = []
    for paint in dict.fromkeys(paints):
        x, y = [], []
        for step in steps:
            if paints[step] == paint:
                x += [step, step, None]
                y += [before[step], after[step], None]
        line = {"color": paint, "width": 2}
        traces.append({"x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False})
    column = min(_TOKEN, max(_DENSE, (WIDTH - _LEFT - 8) / max(len(tokens), 1)))
    roomy = column > 12
    size = 9 if roomy else 6
    hollow = {"size": size, "color": colours.background, "line": {"color": colours.quiet, "width": 1.5}}
    dots = {"x": steps, "mode": "markers", **notes}
    traces += [
        {"y": before, "name": "before", "marker": hollow, **dots},
        {"y": after, "name": "after", "marker": {"size": size, "color": paints}, **dots},
        {
            **{"type": "bar", "x": steps, "y": kl_divergence, "yaxis": "y2", "width": 0.5, "showlegend": False},
            **{"marker": {"color": colours.quiet}, **notes},
        },
    ]
    highest = float(kl_divergence.max(initial=0.0))
    deep = label_width(tokens) * _CHARACTER + 16
    labels = {"tickangle": -90, "tickfont": monospace(12 if roomy else 9), "range": [-0.6, len(tokens) - 0.4]}
    grid = {"showgrid": True, "fixedrange": True, "tickfont": {"size": 12}}
    title = {"font": {"size": 12}, "standoff": 6}
    shares = {"domain": [0.42, 1], "range": [-0.04, 1.04], "tickvals": [0, 0.5, 1]}
    divergence = {"domain": [0, 0.3], "range": [0, highest * 1.1 if highest > ROUNDING else 1.0], "nticks": 3}
    return theme.figure(
        traces,
        dark,
        xaxis=column_axis(token_labels(tokens, dark), fixedrange=True, anchor="y2") | labels,
        yaxis={**grid, **shares, "title": {"text": "probability", **title}},
        yaxis2={**grid, **divergence, "title": {"text": "KL, nats", **title}},
        height=round(262 + deep),
        margin={"l": _LEFT, "r": 8, "t": 30, "b": deep},
        dragmode=False,
        meta={"smallest_width": _LEFT + 8 + math.floor(column * len(tokens))},
    )


def aligned_figure(
    tokens: tuple[Sequence[str], Sequence[str]],
    probabilities: tuple[Float[ndarray, " _"], Float[ndarray, " _"]],
    aligned: Sequence[tuple[int | None, int | None]],
    *,
    names: tuple[str, str],
    dark: bool = False,
) -> go.Figure:
    """Draws two outputs down the page, aligned tokens side by side, shaded by probability; differences are framed."""
    scale = theme.sequential(dark)
    values = np.full((len(aligned), 2), np.nan)
    written, texts = ([["", ""] for _ in aligned] for _ in range(2))
    frames = []
    for place, pair in enumerate(aligned):
        for side, at in enumerate(pair):
            if at is not None:
                values[place, side] = value = float(probabilities[side][at])
                label = hover_label(tokens[side][at])
                written[place][side] = f"{label}  {value:.3f}"
                texts[place][side] = f"<b>{label}</b>, step {at}<br>probability {value:.6g}"
        i, j = pair
        if i is None or j is None or tokens[0][i] != tokens[1][j]:
            frames.append(framed(place, 0, columns=2, colour=theme.kind_colour("cross", dark), width=2))
    trace = cells(
        values, texts, scale=scale, numbers=numbers_on(values, scale, written=written), gap=(2, 1), hoverongaps=False,
        textfont=monospace(12),
    )  # fmt: skip
    longest = max(label_width([*tokens[0], *tokens[1]]) + 8, *map(len, names))
    figure = theme.figure(
        [trace],
        dark,
        shapes=frames,
        xaxis=column_axis([hover_label(name) for name in names], side="top", fixedrange=True),
        yaxis={"showticklabels": False, "range": [len(aligned) - 0.5, -0.5], "fixedrange": True},
        width=round(32 + 2 * max(_COLUMN, longest * _CHARACTER)),
        height=_ABOVE + 16 + _ROW * len(aligned),
        margin={"l": 16, "r": 16, "t": _ABOVE, "b": 16},
        plot_bgcolor=theme.palette(dark).background,
    )
    return theme.on_paper(figure, dark)
