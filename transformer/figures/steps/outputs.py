"""Outputs one below the other: of a model, and of the same model with parts ablated."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import monospace, row_axis
from transformer.figures.heatmap import cells, inked
from transformer.figures.labels import hover_label, label_width

_CHARACTER = 7.6
_ROW, _NUMBERED_ROW = 32, 44
"""Pixels of an output, and of one with a number under each token."""


def outputs_figure(
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    changed: Bool[ndarray, "output step"],
    *,
    probabilities: Sequence[Float[ndarray, " _"]] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws a row of tokens for each output, the ones that changed coloured; shorter rows end earlier.

    The probability of each token, if given, stands under it.
    """
    longest = max(map(len, rows), default=0)
    if not len(rows) == len(names) == len(changed) or changed.shape[1] != longest:
        raise ValueError(f"{len(rows)} outputs of up to {longest} tokens do not fit {changed.shape} marks")
    if probabilities is not None and list(map(len, probabilities)) != list(map(len, rows)):
        raise ValueError("each token needs a probability")
    colours = theme.palette(dark)
    scale = (0.0, colours.surface), (1.0, theme.diverging(dark)[-2][1])
    written, texts = ([["" for _ in range(longest)] for _ in rows] for _ in range(2))
    shown = np.full((len(rows), longest), np.nan)
    for row, tokens in enumerate(rows):
        for step, token in enumerate(tokens):
            shown[row, step] = new = float(changed[row, step])
            label = hover_label(token)
            texts[row][step] = f"<b>{label}</b>"
            written[row][step] = inked(label, scale, 1.0) if new else label
            if probabilities is not None:
                value = float(probabilities[row][step])
                number = f"{value:.2f}" if value >= 0.005 else "&lt;0.01"
                ink = theme.ink_on(scale, 1.0) if new else colours.quiet
                written[row][step] += f'<br><span style="color:{ink}">{number}</span>'
                texts[row][step] += f", probability {value:.6g}"
    says = {"textfont": monospace(12), "hovertemplate": "step %{x}<br>%{customdata}<extra></extra>"}
    trace = cells(shown, texts, scale=scale, numbers=written, gap=(2, 3), hoverongaps=False, **says)
    left = 20 + _CHARACTER * max(map(len, names), default=0)
    cell = max(34, 10 + _CHARACTER * max((label_width(row) for row in rows), default=1))
    return theme.figure(
        [trace],
        dark,
        xaxis={"side": "top", "nticks": longest, "title": {"text": "step"}},
        yaxis=row_axis(names),
        height=72 + (_ROW if probabilities is None else _NUMBERED_ROW) * len(rows),
        margin={"l": left, "r": 8, "t": 60, "b": 8, "autoexpand": False},
        showlegend=False,
        meta={"smallest_width": round(left + 8 + longest * cell)},
    )
