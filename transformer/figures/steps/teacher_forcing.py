"""Losses of a reference by position, teacher-forced and free-running: of one sentence and over many."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.figures.training.curves import RUN_COLOURS, RUN_COLOURS_DARK

_CHARACTER = 7.8


def losses_figure(
    tokens: Sequence[str],
    forced: Float[ndarray, "_"],
    free: Float[ndarray, "_"],
    *,
    divergence: int | None,
    before: Float[ndarray, "_"] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws the loss of each reference token in both ways; a line stands where another token was written first.

    `before`: teacher-forced, without the switches.
    """
    if not len(tokens) == len(forced) == len(free) == len(forced if before is None else before):
        raise ValueError(f"{len(tokens)} tokens need as many losses")
    colours, paints = theme.palette(dark), RUN_COLOURS_DARK if dark else RUN_COLOURS
    fig = theme.apply(go.Figure(), dark)
    baseline = () if before is None else (("without the switches", before, colours.quiet, "x"),)
    for name, losses, paint, symbol in (
        ("after the reference's words", forced, paints[0], "circle"),
        ("after its own words", free, paints[1], "diamond"),
        *baseline,
    ):
        fig.add_scatter(
            x=list(range(len(tokens))), y=losses, mode="lines+markers", name=name,
            line={"color": paint, "width": 2, "dash": "dot" if symbol == "x" else "solid"},
            marker={"symbol": symbol, "size": 8},
            customdata=[
                f"<b>{hover_label(t)}</b><br>{name}: {v:.6g} nats" for t, v in zip(tokens, losses, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    if divergence is not None:
        fig.add_vline(x=divergence, line={"color": colours.text, "width": 1, "dash": "dot"})
        fig.add_annotation(
            x=divergence, y=1, yref="paper", text="first divergence", showarrow=False, xanchor="left", xshift=5,
            yanchor="top", font={"size": 12, "color": colours.quiet}, bgcolor=colours.background,
        )  # fmt: skip
    fig.update_xaxes(
        tickvals=list(range(len(tokens))), range=[-0.5, len(tokens) - 0.5], fixedrange=True, tickangle=-40,
        ticktext=axis_labels(tokens, quiet=colours.quiet, faint=colours.faint),
        tickfont={"family": theme.MONOSPACE, "size": 12},
    )  # fmt: skip
    highest = float(np.nanmax([forced, free, forced if before is None else before]))
    # Above the highest there is room for the words at the line.
    fig.update_yaxes(
        title="loss, nats", fixedrange=True, range=[-0.03 * highest, 1.2 * highest or 1.0], showgrid=True,
        gridcolor=colours.line, showline=False,
    )  # fmt: skip
    deep = label_width(tokens) * _CHARACTER * 0.66 + 26
    return fig.update_layout(
        height=round(270 + deep),
        margin={"l": 60, "r": 12, "t": 36, "b": deep},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 13}},
        dragmode=False,
        meta={"smallest_width": 60 + 34 * len(tokens)},
    )


@dataclass(frozen=True)
class Measured:
    """One position over many sentences, as it is drawn."""

    position: int
    count: int
    going: int
    bias: float
    low: float
    high: float
    forced_right: float
    """Share of right tokens after the right words, 0..1."""
    free_right: float
    """Share of right tokens among those that the model wrote by itself."""


def exposure_figure(measured: Sequence[Measured], *, dark: bool = False) -> go.Figure:
    """Draws exposure bias by position with its 95 % interval; below, the share of right tokens in both ways."""
    colours, paints = theme.palette(dark), RUN_COLOURS_DARK if dark else RUN_COLOURS
    x = [at.position for at in measured]
    fig = theme.apply(go.Figure(), dark)
    fig.add_scatter(
        x=x, y=[at.bias for at in measured], mode="lines+markers", name="exposure bias",
        line={"color": colours.accent, "width": 2}, showlegend=False,
        error_y={
            "type": "data", "symmetric": False, "thickness": 1,
            "array": [at.high - at.bias for at in measured], "arrayminus": [at.bias - at.low for at in measured],
        },
        customdata=[
            f"position {at.position}: {at.bias:+.4g} nats, 95 % from {at.low:+.4g} to {at.high:+.4g}"
            f"<br>{at.going:,} of {at.count:,} outputs go on here" for at in measured
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    for name, shares, paint in (
        ("right after the reference's words", [at.forced_right for at in measured], paints[0]),
        ("right after its own words", [at.free_right for at in measured], paints[1]),
    ):
        fig.add_scatter(
            x=x, y=shares, mode="lines+markers", name=name, yaxis="y2", line={"color": paint, "width": 2},
            customdata=[
                f"position {at.position}: {s:.4g} of {at.count:,}" for at, s in zip(measured, shares, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    fig.add_hline(y=0, line={"color": colours.quiet, "width": 1})
    lowest = min((min(at.forced_right, at.free_right) for at in measured), default=0.0)
    grid = {"showgrid": True, "gridcolor": colours.line, "showline": False, "fixedrange": True}
    fig.update_xaxes(title="position in the reference", fixedrange=True, dtick=max(1, len(x) // 12), anchor="y2")
    plain = {"zeroline": False, "linecolor": colours.line, "tickfont": {"color": colours.text}}
    fig.update_layout(
        yaxis={**plain, **grid, "title": "bias, nats", "domain": [0.56, 1.0]},
        yaxis2={
            **plain, **grid, "title": "share right", "domain": [0.0, 0.44],
            "range": [max(0.0, float(np.floor(lowest * 10) / 10)) - 0.02, 1.02],
        },
        height=420, margin={"l": 60, "r": 12, "t": 34, "b": 48}, dragmode=False,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 13}},
        meta={"smallest_width": 420},
    )  # fmt: skip
    return fig
