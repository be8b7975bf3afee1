"""Masks as matrices: what each forbids, and how several become one. Queries are rows, keys are columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.figures.theme import Kind

_CHARACTER = 7.6
_GAP = 0.07
"""Between two matrices, as a fraction of the figure's width: room for the sign."""


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
    kind: Kind,
    dark: bool = False,
) -> go.Figure:
    """Masks side by side with their conjunction last: a cell is open where all of them are. Closed cells are struck."""
    for part in parts:
        if part.mask.shape != (len(queries), len(keys)):
            raise ValueError(f"a mask of shape {part.mask.shape} does not fit {len(queries)} queries, {len(keys)} keys")
    combined = Part("combined", np.logical_and.reduce([part.mask for part in parts]), "forbidden by one of the masks")
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    drawn = [*parts, combined]
    width = (1 - _GAP * (len(drawn) - 1)) / len(drawn)
    for index, part in enumerate(drawn):
        left = index * (width + _GAP)
        _draw(fig, part, index + 1, queries, keys, kind, dark)
        number = "" if index == 0 else str(index + 1)
        shared = {
            "showline": False,
            "ticks": "",
            "ticklabelstandoff": 5,
            "constrain": "domain",
            "showgrid": False,
            "zeroline": False,
        }
        fig.update_layout(
            {
                f"xaxis{number}": {
                    **shared,
                    "domain": [left, left + width],
                    "anchor": f"y{number}",
                    "side": "top",
                    "tickangle": -90,
                    "tickvals": list(range(len(keys))),
                    "ticktext": axis_labels(keys, quiet=colours.quiet, faint=colours.faint),
                    "tickfont": {"family": theme.MONOSPACE, "size": 12},
                    "range": [-0.5, len(keys) - 0.5],
                },
                f"yaxis{number}": {
                    **shared,
                    "anchor": f"x{number}",
                    "range": [len(queries) - 0.5, -0.5],
                    "scaleanchor": f"x{number}",
                    "constraintoward": "top",
                    "tickvals": list(range(len(queries))),
                    "ticktext": axis_labels(queries, quiet=colours.quiet, faint=colours.faint),
                    "tickfont": {"family": theme.MONOSPACE, "size": 12},
                    "showticklabels": index == 0,
                },
            }
        )
        _label(fig, part.name, left + width / 2, 1, shift=-8, colour=theme.kind_colour(kind, dark), anchor="bottom")
        if index:
            _label(fig, "=" if part is combined else "∧", left - _GAP / 2, 0.5, colour=colours.quiet, size=24)
    top = 44 + label_width(keys) * _CHARACTER
    side = 24 + label_width(queries) * _CHARACTER
    smallest = round(side + len(drawn) * max(14 * len(keys), 130) / (1 - _GAP))
    cell = max(14.0, (860 - side) * width / max(len(keys), 1)) if len(keys) > 6 else 40.0
    for note in fig.layout.annotations:
        if note.yshift == -8:
            note.update(yshift=label_width(keys) * _CHARACTER + 14)
    fig.update_layout(
        height=round(top + len(queries) * min(cell, 40) + 16),
        margin={"l": side, "r": 8, "t": top, "b": 12, "autoexpand": False},
        meta={"smallest_width": smallest},
    )
    return fig


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
        meta={"smallest_width": round(32 + real.shape[1] * max(34, longest * _CHARACTER))},
    )
    return fig


def _draw(
    fig: go.Figure, part: Part, number: int, queries: Sequence[str], keys: Sequence[str], kind: Kind, dark: bool
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


def _label(
    fig: go.Figure,
    text: str,
    x: float,
    y: float,
    *,
    colour: str,
    size: int = 14,
    shift: float = 0,
    anchor: str = "middle",
) -> None:
    fig.add_annotation(
        text=text,
        showarrow=False,
        **{"xref": "paper", "yref": "paper", "x": x, "y": y, "xanchor": "center", "yanchor": anchor, "yshift": shift},
        font={"size": size, "color": colour},
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
