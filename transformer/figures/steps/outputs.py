"""Outputs one below the other: what a model writes, and what it writes with something taken out."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import hover_label, label_width

_CHARACTER = 7.6
_ROW, _NUMBERED_ROW = 32, 44
"""Pixels of an output, and of one with a number under each token."""


def outputs_figure(
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    changed: Bool[ndarray, "output step"],
    *,
    probabilities: Sequence[Float[ndarray, "_"]] | None = None,
    dark: bool = False,
) -> go.Figure:
    """A row of tokens for each output, the ones that changed coloured; shorter rows end earlier.

    Where probabilities are given, each token's stands under it.
    """
    longest = max(map(len, rows), default=0)
    if not len(rows) == len(names) == len(changed) or changed.shape[1] != longest:
        raise ValueError(f"{len(rows)} outputs of up to {longest} tokens do not fit {changed.shape} marks")
    if probabilities is not None and list(map(len, probabilities)) != list(map(len, rows)):
        raise ValueError("each token needs a probability")
    colours = theme.palette(dark)
    scale = (0.0, colours.surface), (1.0, theme.diverging(dark)[-2][1])
    texts = [[*map(hover_label, row), *[""] * (longest - len(row))] for row in rows]
    notes = [[f"<b>{text}</b>" for text in row] for row in texts]
    for row, step in np.argwhere(changed).tolist():
        texts[row][step] = f'<span style="color:{theme.ink_on(scale, 1.0)}">{texts[row][step]}</span>'
    for row, values in enumerate(probabilities or ()):
        for step, value in enumerate(map(float, values)):
            ink = theme.ink_on(scale, 1.0) if changed[row, step] else colours.quiet
            number = f"{value:.2f}" if value >= 0.005 else "&lt;0.01"
            texts[row][step] += f'<br><span style="color:{ink}">{number}</span>'
            notes[row][step] += f", probability {value:.6g}"
    shown = np.where([[step < len(row) for step in range(longest)] for row in rows], changed.astype(float), np.nan)
    fig = theme.apply(go.Figure(), dark)
    fig.add_heatmap(
        z=shown,
        zmin=0,
        zmax=1,
        colorscale=scale,
        showscale=False,
        xgap=2,
        ygap=3,
        text=texts,
        texttemplate="%{text}",
        textfont={"size": 12, "family": theme.MONOSPACE},
        customdata=notes,
        hovertemplate="step %{x}<br>%{customdata}<extra></extra>",
        hoverongaps=False,
    )
    fig.update_xaxes(showline=False, ticks="", side="top", nticks=longest, title={"text": "step"})
    fig.update_yaxes(
        showline=False, ticks="", tickvals=list(range(len(names))), ticktext=list(names), range=[len(names) - 0.5, -0.5]
    )
    left = 20 + _CHARACTER * max(map(len, names), default=0)
    cell = max(34, 10 + _CHARACTER * max((label_width(row) for row in rows), default=1))
    height = _ROW if probabilities is None else _NUMBERED_ROW
    fig.update_layout(
        height=72 + height * len(rows),
        margin={"l": left, "r": 8, "t": 60, "b": 8, "autoexpand": False},
        showlegend=False,
    )
    return fig.update_layout(meta={"smallest_width": round(left + 8 + longest * cell)})
