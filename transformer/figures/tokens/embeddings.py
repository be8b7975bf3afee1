"""Token embeddings as figures: a map of all, and the cosines of one token's neighbours."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import monospace, row_axis, token_labels
from transformer.figures.bars import bars
from transformer.figures.labels import axis_labels, hover_label
from transformer.figures.lines import line, points

_ROW, _EDGES = 26, 60
"""Pixels of a bar's row, and of what is above and below all rows."""


def embedding_map(
    tokens: Sequence[str],
    groups: Sequence[str],
    names: Sequence[str],
    places: Float[ndarray, "token 2"],
    shares: Float[ndarray, "2"],
    picked: int,
    nearest: Int[ndarray, " neighbour"],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws a dot for each token in the colour of its group, with lines from one token to those next to it.

    `names` are all groups there may be, in the order of their colours.
    """
    colours, of = theme.palette(dark), np.array(groups)
    traces = []
    for number, name in enumerate(name for name in names if name in groups):
        rows = np.flatnonzero(of == name)
        texts = [hover_label(tokens[row]) for row in rows]
        marker = {"color": theme.run_colour(number, dark), "size": 5, "opacity": 0.6}
        dots = {"marker": marker, "unselected": {"marker": {"opacity": 0.6}}}  # clicked or not, all stay as they are
        traces.append(points(*places[rows].T, texts, name=name, showlegend=True, **dots))
    ends = np.full((3 * len(nearest), 2), np.nan)
    ends[0::3], ends[1::3] = places[picked], places[nearest]
    traces.append(line(*ends.T, colours.quiet, width=1, showlegend=False, hoverinfo="skip"))
    labelled = [picked, *nearest]
    words = axis_labels([tokens[row] for row in labelled], quiet=colours.quiet, faint=colours.faint)
    words[0] = f"<b>{words[0]}</b>"
    marker = {"color": colours.text, "size": [11, *(7 for _ in nearest)]}
    said = [hover_label(tokens[row]) for row in labelled]
    traces.append(points(*places[labelled].T, said, marker=marker))
    face = {
        "font": monospace(13, color=colours.text),
        "bgcolor": colours.background,
        "opacity": 0.85,
        "borderpad": 0,
        "yshift": 14,
    }
    notes = [{"x": x, "y": y, "text": word, **face} for (x, y), word in zip(places[labelled], words, strict=True)]
    axes = {"showgrid": True, "zeroline": True, "zerolinecolor": colours.line, "automargin": True}
    titles = [f"component {i}: {100 * share:.1f} % of the variance" for i, share in enumerate(shares, start=1)]
    return theme.figure(
        traces,
        dark,
        annotations=notes[::-1],  # the chosen one on top
        height=560,
        xaxis=axes | {"title": {"text": titles[0]}},
        yaxis=axes | {"title": {"text": titles[1]}, "scaleanchor": "x"},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        showlegend=True,
        hovermode="closest",
    )


def cosine_bars(tokens: Sequence[str], cosines: Float[ndarray, " token"], *, dark: bool = False) -> go.Figure:
    """Draws the cosine of each token as a bar."""
    colours = theme.palette(dark)
    numbers = [f"{value:.3f}" for value in cosines]
    texts = [f"{hover_label(token)}: {value:.6g}" for token, value in zip(tokens, cosines, strict=True)]
    low = min(0.0, 1.15 * float(cosines.min(initial=0.0)))
    return theme.figure(
        [bars(cosines, texts, colours.accent, numbers=numbers)],
        dark,
        height=_ROW * len(tokens) + _EDGES,
        xaxis={"title": {"text": "cosine"}, "range": [low, 1.12], "showgrid": True, "automargin": True},
        yaxis=row_axis(token_labels(tokens, dark), tickfont=monospace(13), automargin=True),
        margin={"l": 8, "r": 8, "t": 8, "b": 48},
    )
