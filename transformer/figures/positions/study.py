"""The paired study of positions as figures: how each kind learned, and how it does beyond its trained lengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import hover_label
from transformer.figures.training.curves import run_colour

_SHADE = 0.14
"""Opacity of an interval's band: up to five of them overlap."""


@dataclass(frozen=True)
class Learning:
    """One run's exact match over its steps, and whose line it is."""

    name: str
    seed: int
    step: Int[ndarray, "point"]
    exact_match: Float[ndarray, "point"]
    """0..1."""


@dataclass(frozen=True)
class ByLength:
    """Exact match of one kind at each length, with its interval; a length with a count of 0 was refused."""

    name: str
    length: Int[ndarray, "length"]
    right: Int[ndarray, "length"]
    count: Int[ndarray, "length"]
    low: Float[ndarray, "length"]
    high: Float[ndarray, "length"]


def learning_figure(
    curves: Sequence[Learning], names: Sequence[str], *, budget: int, target: float, dark: bool = False
) -> go.Figure:
    """Draws a line for each run, in one colour for all seeds of a name; the target is dotted."""
    fig = theme.apply(go.Figure(), dark)
    named: set[str] = set()
    for curve in curves:
        index = names.index(curve.name)
        fig.add_scatter(
            x=curve.step,
            y=100 * curve.exact_match,
            name=hover_label(curve.name),
            legendgroup=curve.name,
            showlegend=curve.name not in named,
            mode="lines",
            line={"color": run_colour(index, dark), "width": 1.75, "dash": _dash(index)},
            hovertemplate=f"{hover_label(curve.name)}, seed {curve.seed}<br>step %{{x:,}}: %{{y:.1f}} %<extra></extra>",
        )
        named.add(curve.name)
    fig.add_hline(y=100 * target, line={"color": theme.palette(dark).quiet, "width": 1, "dash": "dot"})
    fig.update_xaxes(title_text="step", range=[0, budget * 1.01])
    return _framed(fig, "validation exact match, %", dark)


def lengths_figure(
    curves: Sequence[ByLength], names: Sequence[str], *, trained_to: int, dark: bool = False
) -> go.Figure:
    """Draws a line for each kind with the band of its interval; the lengths of training are shaded."""
    fig = theme.apply(go.Figure(), dark)
    for curve in curves:
        index, answered = names.index(curve.name), curve.count > 0
        colour = run_colour(index, dark)
        x, share = curve.length[answered], 100 * curve.right[answered] / curve.count[answered]
        low, high = 100 * curve.low[answered], 100 * curve.high[answered]
        fig.add_scatter(
            x=np.concatenate((x, x[::-1])), y=np.concatenate((high, low[::-1])), fill="toself", fillcolor=colour,
            opacity=_SHADE, mode="none", legendgroup=curve.name, showlegend=False, hoverinfo="skip",
        )  # fmt: skip
        fig.add_scatter(
            x=x,
            y=share,
            name=hover_label(curve.name),
            legendgroup=curve.name,
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": _dash(index)},
            marker={"color": colour, "size": 5},
            customdata=np.stack((curve.right[answered], curve.count[answered], low, high), axis=1),
            hovertemplate=f"{hover_label(curve.name)}, %{{x}} symbols<br>%{{customdata[0]:,.0f}} of "
            "%{customdata[1]:,.0f} right: %{y:.1f} %<br>95 %: %{customdata[2]:.1f} to %{customdata[3]:.1f} %"
            "<extra></extra>",
        )
    _shade_training(fig, trained_to, dark)
    longest = max((int(curve.length.max()) for curve in curves if len(curve.length)), default=trained_to)
    fig.update_xaxes(title_text="length of the sentence, symbols", range=[0.5, longest + 0.5])
    return _framed(fig, "exact match, %", dark)


def verdict_figure(
    names: Sequence[str], columns: Mapping[str, Float[ndarray, "kind 3"]], *, dark: bool = False
) -> go.Figure:
    """Draws a point with its range for each kind, in a colour for each column: middle, low and high, 0..1."""
    fig = theme.apply(go.Figure(), dark)
    for index, (title, values) in enumerate(columns.items()):
        middle, low, high = 100 * values.T
        fig.add_scatter(
            x=list(names),
            y=middle,
            error_y={"array": high - middle, "arrayminus": middle - low, "width": 6},
            name=hover_label(title),
            mode="markers",
            marker={"color": run_colour(index, dark), "size": 9},
            hovertemplate=f"%{{x}}, {hover_label(title)}: %{{y:.1f}} %<extra></extra>",
        )
    return _framed(fig, "exact match, %", dark)


def _shade_training(fig: go.Figure, trained_to: int, dark: bool) -> None:
    colours = theme.palette(dark)
    fig.add_vrect(x0=0.5, x1=trained_to + 0.5, fillcolor=colours.line, opacity=0.35, line_width=0, layer="below")
    fig.add_annotation(
        text="lengths of training", x=trained_to + 0.35, y=60, xanchor="right", yanchor="middle",
        showarrow=False, font={"color": colours.quiet, "size": 12},
    )  # fmt: skip


def _framed(fig: go.Figure, title: str, dark: bool) -> go.Figure:
    fig.update_xaxes(showline=True, automargin=True)
    fig.update_yaxes(
        title_text=title,
        range=[-3, 103],
        tickvals=[0, 25, 50, 75, 100],
        showgrid=True,
        gridcolor=theme.palette(dark).line,
        automargin=True,
    )
    return fig.update_layout(
        height=380,
        hovermode="closest",
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
    )


def _dash(index: int) -> str:
    return ("solid", "dash", "solid", "dot", "dashdot", "solid")[index % 6]
