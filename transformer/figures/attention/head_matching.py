"""How alike every head of one model is to every head of another, with the pairs that belong together."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.model.kinds import KindName

_CELL, _LEFT, _TOP = 30, 92, 78
"""Pixels."""
_NUMBERED = 16
"""Up to this many heads the numbers stand in the cells."""


def matching_figure(
    distances: Float[ndarray, "head other"],
    heads: Sequence[tuple[int, int]],
    others: Sequence[tuple[int, int]],
    partners: Sequence[int | None],
    *,
    chosen: int | None = None,
    kind: KindName,
    names: tuple[str, str],
    dark: bool = False,
) -> go.Figure:
    """Rows are heads of the first model, columns of the second. Pairs are framed, that of the row `chosen` boldly."""
    if distances.shape != (len(heads), len(others)) or len(partners) != len(heads):
        raise ValueError(f"{len(heads)} and {len(others)} heads do not fit distances of shape {distances.shape}")
    colours, scale = theme.palette(dark), theme.distances(dark)
    numbered = max(distances.shape, default=0) <= _NUMBERED
    fig = theme.apply(go.Figure(), dark)
    fig.add_heatmap(
        z=distances,
        zmin=0,
        zmax=1,
        colorscale=scale,
        showscale=False,
        xgap=1,
        ygap=1,
        text=_numbers(distances, scale) if numbered else None,
        texttemplate="%{text}" if numbered else None,
        textfont={"size": 11},
        customdata=[
            [
                f"{names[0]}: layer {a}, head {b}<br>{names[1]}: layer {c}, head {d}<br>distance {distances[i, j]:.6g}"
                + ("<br>paired" if partners[i] == j else "")
                for j, (c, d) in enumerate(others)
            ]
            for i, (a, b) in enumerate(heads)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    for row, column in enumerate(partners):
        if column is not None:
            corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
            line = {"color": theme.kind_colour(kind, dark), "width": 3.5 if row == chosen else 1.5}
            fig.add_shape(type="rect", **corners, line=line)
    bare = {"showline": False, "ticks": "", "showgrid": False, "zeroline": False, "fixedrange": True}
    font = {"size": 12, "color": colours.text}
    fig.update_xaxes(
        **bare,
        side="top",
        tickvals=list(range(len(others))),
        ticktext=[f"{layer}.{head}" for layer, head in others],
        tickangle=0 if len(others) <= _NUMBERED else -90,
        tickfont=font,
        range=[-0.5, len(others) - 0.5],
        title={"text": f"{names[1]}: layer.head", "standoff": 6},
    )
    fig.update_yaxes(
        **bare,
        tickvals=list(range(len(heads))),
        ticktext=[f"{layer}.{head}" for layer, head in heads],
        tickfont=font,
        range=[len(heads) - 0.5, -0.5],
        title={"text": f"{names[0]}: layer.head", "standoff": 6},
    )
    cell = _CELL if numbered else 14
    return fig.update_layout(
        height=round(_TOP + len(heads) * cell + 8),
        margin={"l": _LEFT, "r": 8, "t": _TOP, "b": 8, "autoexpand": False},
        dragmode=False,
        meta={"smallest_width": round(_LEFT + len(others) * cell * 1.1 + 8)},
    )


def _numbers(distances: Float[ndarray, "head other"], scale: theme.Scale) -> list[list[str]]:
    return [
        [f'<span style="color:{theme.ink_on(scale, float(value))}">{value:.2f}</span>' for value in row]
        for row in np.clip(distances, 0, 1)
    ]
