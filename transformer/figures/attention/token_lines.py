"""Two rows of tokens with a line for every weight between them."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import monospace, note, token_labels
from transformer.figures.heatmap import check_labels
from transformer.figures.labels import exact, hover_label, label_width
from transformer.figures.lines import points
from transformer.model.kinds import KindName

_CHARACTER, _ROOM, _GAP, _CHIP, _APART = 7.6, 18, 6, 28, 124
"""Pixels: a character of a token, the room around it, the gap between two, a token's height, the gap between rows."""
_LEVELS = 64
"""The number of opacities that lines may have; the lines of each are one path."""


def lines_figure(
    source: Sequence[str],
    target: Sequence[str],
    weights: Float[ndarray, "target source"],
    *,
    kind: KindName,
    labels: tuple[str, str] = ("source", "target"),
    top: float = 1.0,
    least: float = 0.0,
    off: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draws source tokens above, target tokens below; a line's opacity is its weight over `top`, in 64 steps.

    Weights below `least` have no line; those of a head that is `off` are grey. Hovering over a token names its three
    largest weights exactly.
    """
    check_labels(weights, target, source)
    colours = theme.palette(dark)
    drawn = np.nan_to_num(np.where(weights < least, 0, weights))
    rows = [(source, drawn.T, target, 0, "is looked at by"), (target, drawn, source, _CHIP + _APART, "looks at")]
    edges = [_edges(tokens) for tokens, *_ in rows]
    shapes = _paths(drawn / top, edges, colours.quiet if off else theme.kind_colour(kind, dark))
    texts = []
    for (tokens, values, others, y, verb), places in zip(rows, edges, strict=True):
        chip = {"type": "rect", "layer": "below", "y0": y, "y1": y + _CHIP, "line": {"color": colours.line, "width": 1}}
        shapes += [chip | {"x0": a, "x1": b, "fillcolor": colours.background} for a, b in places]
        notes = [
            f"<b>{hover_label(token)}</b> {verb}{_largest(values[index], others)}" for index, token in enumerate(tokens)
        ]
        middles, face = [(a + b) / 2 for a, b in places], monospace(13, color=colours.text)
        at, shown = [y + _CHIP / 2 for _ in tokens], token_labels(tokens, dark)
        texts.append(points(middles, at, notes, mode="text", text=shown, textfont=face))
    width = max(end for places in edges for _, end in places)
    bare = {"visible": False, "fixedrange": True}
    height = 2 * _CHIP + _APART
    names = [
        note(hover_label(label), 0, y, "left", anchor, yshift=shift, borderpad=0)
        for label, y, anchor, shift in ((labels[0], 1, "bottom", 6), (labels[1], 0, "top", -6))
    ]
    figure = theme.figure(
        texts,
        dark,
        shapes=shapes,
        annotations=names,
        xaxis={**bare, "range": [-1, width + 1]},
        yaxis={**bare, "range": [height + 1, -1]},
        width=round(width + 26),
        height=height + 70,
        margin={"l": 12, "r": 12, "t": 34, "b": 34, "autoexpand": False},
        dragmode=False,
    )
    return theme.on_paper(figure, dark)


def _edges(tokens: Sequence[str]) -> list[tuple[float, float]]:
    """Returns where each token begins and ends."""
    widths = [label_width([token]) * _CHARACTER + _ROOM for token in tokens]
    starts = accumulate((width + _GAP for width in widths), initial=0.0)
    return [(start, after - _GAP) for start, after in pairwise(starts)]


def _paths(shares: Float[ndarray, "target source"], edges: Sequence[list[tuple[float, float]]], colour: str) -> list:
    """Returns a path for each opacity that occurs: all lines of that share, from source down to target tokens."""
    levels = np.ceil(np.clip(shares, 0, 1) * _LEVELS - 0.5).astype(int)
    above, below, bend = _CHIP, _CHIP + _APART, _CHIP + _APART / 2
    middles = [[(a + b) / 2 for a, b in places] for places in edges]
    found = []
    for level in np.unique(levels[levels > 0]).tolist():
        ends = [(middles[0][column], middles[1][row]) for row, column in np.argwhere(levels == level).tolist()]
        path = " ".join(f"M{a:.1f},{above}C{a:.1f},{bend} {b:.1f},{bend} {b:.1f},{below}" for a, b in ends)
        line = {"color": colour, "width": 2.5}
        found.append({"type": "path", "path": path, "opacity": level / _LEVELS, "line": line, "layer": "below"})
    return found


def _largest(values: Float[ndarray, " _"], tokens: Sequence[str]) -> str:
    """Returns the three largest values in words, each with its token."""
    order: list[int] = np.argsort(-values, kind="stable")[:3].tolist()
    return "".join(f"<br>{hover_label(tokens[index])} {exact(values[index])}" for index in order)
