"""Masks as matrices: what each forbids, and how several become one. Queries are rows, keys are columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.model.kinds import KindName

_CHARACTER = 7.6
_GAP = 0.07
"""Between two matrices, as a fraction of the figure's width: room for the sign."""
_LARGEST, _SMALLEST = 28.0, 6.0
"""Pixels of a cell."""
_WIDTH = 860
"""Pixels that a figure is made for: wide enough for three masks of 40 tokens; a narrower window scrolls."""
_LABEL = 9.0
"""Pixels between two labels at least."""


@dataclass(frozen=True)
class Part:
    """One mask and what is said about it."""

    name: str
    mask: Bool[ndarray, "query key"]
    forbids: str
    """Why a cell is forbidden, for hovering."""


def masks_figure(
    parts: Sequence[Part],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    kind: KindName,
    dark: bool = False,
) -> go.Figure:
    """Masks side by side with their conjunction last: a cell is open where all of them are. Closed cells are struck.

    One mask alone is its own conjunction and is drawn once.
    """
    for part in parts:
        if part.mask.shape != (len(queries), len(keys)):
            raise ValueError(f"a mask of shape {part.mask.shape} does not fit {len(queries)} queries, {len(keys)} keys")
    combined = Part("combined", np.logical_and.reduce([part.mask for part in parts]), "forbidden by one of the masks")
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    drawn = [*parts, combined] if len(parts) > 1 else [*parts]
    width = (1 - _GAP * (len(drawn) - 1)) / len(drawn)
    side = 24 + label_width(queries) * _CHARACTER
    fitting = (_WIDTH - side) * width / max(len(keys), 1)
    cell, smallest = min(_LARGEST, max(_SMALLEST, fitting)), min(14.0, max(_SMALLEST, 0.65 * fitting))
    top = 44 + label_width(keys) * _CHARACTER
    for index, part in enumerate(drawn):
        left = index * (width + _GAP)
        _draw(fig, part, index + 1, queries, keys, kind, dark)
        _draw_axes(fig, index, (left, left + width), queries, keys, smallest, alone=len(drawn) == 1, dark=dark)
        name = {"x": (len(keys) - 1) / 2, "xref": f"x{index + 1}" if index else "x", "yshift": top - 30}
        _label(fig, part.name, 1, colour=theme.kind_colour(kind, dark), yanchor="bottom", **name)
        if index:
            sign = "=" if part is combined else "∧"
            _label(fig, sign, 0.5, colour=colours.quiet, size=24, x=left - _GAP / 2, xref="paper", yanchor="middle")
    fig.update_layout(
        height=round(top + len(queries) * cell + 16),
        margin={"l": side, "r": 8, "t": top, "b": 12, "autoexpand": False},
        meta={"smallest_width": round(side + 8 + max(smallest * len(keys), 90) / width)},
    )
    return fig


def _draw_axes(
    fig: go.Figure,
    index: int,
    domain: tuple[float, float],
    queries: Sequence[str],
    keys: Sequence[str],
    cell: float,
    *,
    alone: bool,
    dark: bool,
) -> None:
    """Tokens at rows and columns, as many as have room where cells are as small as they may become."""
    colours, number, every = theme.palette(dark), "" if index == 0 else str(index + 1), math.ceil(_LABEL / cell)
    shared = {
        "showline": False,
        "ticks": "",
        "ticklabelstandoff": 5,
        "constrain": "domain",
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"family": theme.MONOSPACE, "size": 12 if cell >= 14 else max(9, min(12, cell * every * 0.85))},
    }
    rows, columns = (
        {
            "tickvals": list(range(0, len(tokens), every)),
            "ticktext": axis_labels(tokens[::every], quiet=colours.quiet, faint=colours.faint),
        }
        for tokens in (queries, keys)
    )
    fig.update_layout(
        {
            f"xaxis{number}": {
                **shared,
                **columns,
                "domain": domain,
                "anchor": f"y{number}",
                "side": "top",
                "tickangle": -90,
                "range": [-0.5, len(keys) - 0.5],
                "constraintoward": "left" if alone else "center",
            },
            f"yaxis{number}": {
                **shared,
                **rows,
                "anchor": f"x{number}",
                "range": [len(queries) - 0.5, -0.5],
                "scaleanchor": f"x{number}",
                "constraintoward": "top",
                "showticklabels": index == 0,
            },
        }
    )


def batch_figure(
    rows: Sequence[Sequence[str]], real: Bool[ndarray, "sentence position"], dark: bool = False
) -> go.Figure:
    """The sentences of a batch one below the other; the empty places that make them equally long are struck."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    texts = [[hover_label(token) for token in row] for row in rows]
    fig.add_heatmap(
        z=real.astype(float),
        colorscale=[[0, colours.masked], [1, colours.surface]],
        zmin=0,
        zmax=1,
        showscale=False,
        xgap=2,
        ygap=3,
        text=texts,
        texttemplate="%{text}",
        textfont={"size": 12, "family": theme.MONOSPACE},
        customdata=[[f"position {i}<br><b>{text}</b>" for i, text in enumerate(row)] for row in texts],
        hovertemplate="%{customdata}<extra></extra>",
    )
    fig.update_xaxes(showline=False, ticks="", showticklabels=False)
    fig.update_yaxes(
        showline=False,
        ticks="",
        ticklabelstandoff=5,
        tickvals=list(range(len(rows))),
        tickfont={"color": colours.quiet},
        range=[len(rows) - 0.5, -0.5],
    )
    longest = max((label_width(row) for row in rows), default=1)
    fig.update_layout(
        height=len(rows) * 32 + 12,
        margin={"l": 24, "r": 8, "t": 4, "b": 4, "autoexpand": False},
        meta={"smallest_width": round(32 + real.shape[1] * max(34, longest * _CHARACTER + 8))},
    )
    return fig


def _draw(
    fig: go.Figure, part: Part, number: int, queries: Sequence[str], keys: Sequence[str], kind: KindName, dark: bool
) -> None:
    colours = theme.palette(dark)
    axis = "" if number == 1 else str(number)
    fig.add_heatmap(
        z=part.mask.astype(float),
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        colorscale=[[0, colours.masked], [1, theme.kind_colour(kind, dark)]],
        zmin=0,
        zmax=1,
        opacity=0.75,
        showscale=False,
        xgap=1,
        ygap=1,
        customdata=[
            [
                f"query <b>{hover_label(query)}</b>, row {row}<br>key <b>{hover_label(key)}</b>, column {column}<br>"
                + ("may attend" if part.mask[row, column] else part.forbids)
                for column, key in enumerate(keys)
            ]
            for row, query in enumerate(queries)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    strokes = " ".join(
        f"M{column - 0.25},{row + 0.25}L{column + 0.25},{row - 0.25}"
        for row, column in zip(*(axis.tolist() for axis in np.nonzero(~part.mask)), strict=True)
    )
    if strokes:
        fig.add_shape(
            type="path",
            path=strokes,
            xref=f"x{axis}",
            yref=f"y{axis}",
            line={"color": colours.quiet, "width": 0.6},
            opacity=0.7,
        )


def _label(fig: go.Figure, text: str, y: float, *, colour: str, size: int = 14, **place: Any) -> None:
    fig.add_annotation(
        text=text, showarrow=False, y=y, yref="paper", xanchor="center", font={"size": size, "color": colour}, **place
    )


def leak_figure(
    names: Sequence[str], before: Sequence[float], after: Sequence[float], *, dark: bool = False
) -> go.Figure:
    """Shares of attention on what masks hide, with all masks (open) and as switched (filled)."""
    if not len(names) == len(before) == len(after):
        raise ValueError(f"{len(names)} names do not fit {len(before)} and {len(after)} shares")
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    hollow = {"color": colours.background, "line": {"color": colours.quiet, "width": 1.5}}
    for name, shares, look in (("all masks on", before, hollow), ("as switched", after, {"color": colours.accent})):
        fig.add_scatter(
            x=list(shares),
            y=list(range(len(names))),
            mode="markers",
            name=name,
            marker={"size": 11, **look},
            hovertemplate=f"{name}: %{{x:.4g}}<extra></extra>",
        )
    fig.update_yaxes(tickvals=list(range(len(names))), ticktext=list(names), range=[len(names) - 0.5, -0.5], ticks="")
    fig.update_xaxes(range=[-0.03, 1.03], title={"text": "mean share of a real query's attention"}, nticks=6)
    left = 20 + _CHARACTER * max(map(len, names), default=0)
    fig.update_layout(height=120 + 34 * len(names), margin={"l": left, "r": 12, "t": 40, "b": 52})
    return fig.update_layout(legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"})


def forcing_figure(names: Sequence[str], values: Sequence[float], *, dark: bool = False) -> go.Figure:
    """Largest differences that a teacher-forced pass shows, as bars with their numbers."""
    if len(names) != len(values):
        raise ValueError(f"{len(names)} names do not fit {len(values)} values")
    fig = theme.apply(go.Figure(), dark)
    fig.add_bar(
        x=list(values),
        y=list(range(len(names))),
        orientation="h",
        width=0.5,
        marker={"color": theme.palette(dark).accent},
        text=[f"{value:.3g}" for value in values],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x:.9g}<extra></extra>",
    )
    fig.update_yaxes(tickvals=list(range(len(names))), ticktext=list(names), range=[len(names) - 0.5, -0.5], ticks="")
    fig.update_xaxes(rangemode="tozero", title={"text": "largest difference of probabilities, log-probabilities"})
    left = 20 + _CHARACTER * max(map(len, names), default=0)
    return fig.update_layout(height=90 + 34 * len(names), margin={"l": left, "r": 64, "t": 12, "b": 52})
