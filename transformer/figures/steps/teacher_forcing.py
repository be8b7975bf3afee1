"""Losses of a reference by position, teacher-forced and free-running, for one sentence and over many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import column_axis, hover, level, monospace, token_labels, upright
from transformer.figures.labels import hover_label, label_width
from transformer.figures.lines import line

_CHARACTER = 7.8
SMALL = 0.01
"""Nats: biases nearer to 0 are drawn as what they are, next to nothing, not over the whole height."""


def losses_figure(
    tokens: Sequence[str],
    forced: Float[ndarray, " _"],
    free: Float[ndarray, " _"],
    *,
    divergence: int | None,
    before: Float[ndarray, " _"] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws the loss of each reference token in both ways; a line stands where another token was written first.

    `before`: teacher-forced, without the switches.
    """
    if not len(tokens) == len(forced) == len(free) == len(forced if before is None else before):
        raise ValueError(f"{len(tokens)} tokens need as many losses")
    colours = theme.palette(dark)
    traces = []
    for name, losses, paint, symbol in (
        ("after the reference's words", forced, theme.run_colour(0, dark), "circle"),
        ("after its own words", free, theme.run_colour(1, dark), "diamond"),
        ("without the switches", before, colours.quiet, "x"),
    ):
        if losses is not None:
            texts = [f"<b>{hover_label(t)}</b><br>{name}: {v:.6g} nats" for t, v in zip(tokens, losses, strict=True)]
            look = {"dash": "dot" if losses is before else "solid", "marker": {"symbol": symbol, "size": 8}}
            traces.append(_marked(list(range(len(tokens))), losses, paint, texts, name=name, **look))
    marked: dict[str, Any] = {}
    if divergence is not None:
        corner = {"yref": "paper", "xanchor": "left", "yanchor": "top", "xshift": 5, "bgcolor": colours.background}
        marked["shapes"] = [upright(divergence, colours.text, dash="dot")]
        marked["annotations"] = [{"x": divergence, "y": 1, "text": "first divergence", **corner}]
    highest = float(np.nanmax([forced, free, forced if before is None else before]))
    # Above the highest there is room for the words at the line.
    up = {"range": [-0.03 * highest, 1.2 * highest or 1.0], "showgrid": True, "fixedrange": True}
    deep = label_width(tokens) * _CHARACTER * 0.66 + 26
    return theme.figure(
        traces,
        dark,
        xaxis=column_axis(token_labels(tokens, dark), fixedrange=True, tickangle=-40, tickfont=monospace(12)),
        yaxis={"title": {"text": "loss, nats"}, **up},
        height=round(270 + deep),
        margin={"l": 60, "r": 12, "t": 36, "b": deep},
        dragmode=False,
        meta={"smallest_width": 60 + 34 * len(tokens)},
        **marked,
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
    """The share of right tokens after the right words, 0..1."""
    free_right: float
    """The share of right tokens among those that the model wrote by itself."""


def exposure_figure(measured: Sequence[Measured], *, dark: bool = False) -> go.Figure:
    """Draws exposure bias by position with its 95 % interval; below, the share of right tokens in both ways."""
    colours = theme.palette(dark)
    x = [at.position for at in measured]
    texts = [
        f"position {at.position}: {at.bias:+.4g} nats, 95 % from {at.low:+.4g} to {at.high:+.4g}"
        f"<br>{at.going:,} of {at.count:,} outputs continue here"
        for at in measured
    ]
    ends = {"array": [at.high - at.bias for at in measured], "arrayminus": [at.bias - at.low for at in measured]}
    interval = {"error_y": {"type": "data", "symmetric": False, "thickness": 1, **ends}, "showlegend": False}
    biases = [at.bias for at in measured]
    traces = [_marked(x, biases, colours.accent, texts, name="exposure bias", **interval)]
    for index, (name, shares) in enumerate(
        (
            ("right after the reference's words", [at.forced_right for at in measured]),
            ("right after its own words", [at.free_right for at in measured]),
        )
    ):
        texts = [f"position {at.position}: {s:.4g} of {at.count:,}" for at, s in zip(measured, shares, strict=True)]
        traces.append(_marked(x, shares, theme.run_colour(index, dark), texts, name=name, yaxis="y2"))
    lowest = min((min(at.forced_right, at.free_right) for at in measured), default=0.0)
    grid = {"showgrid": True, "fixedrange": True}
    shares_range = [max(0.0, float(np.floor(lowest * 10) / 10)) - 0.02, 1.02]
    farthest = max((abs(end) for at in measured for end in (at.bias, at.low, at.high) if np.isfinite(end)), default=0.0)
    biases_range = {"range": [-SMALL, SMALL]} if farthest < SMALL else {}
    position = {"text": "position in the reference"}
    return theme.figure(
        traces,
        dark,
        shapes=[level(0, colours.quiet)],
        xaxis={"title": position, "fixedrange": True, "dtick": max(1, len(x) // 12), "anchor": "y2"},
        yaxis={"title": {"text": "bias, nats"}, "domain": [0.56, 1.0], **biases_range, **grid},
        yaxis2={"title": {"text": "share right"}, "domain": [0.0, 0.44], "range": shares_range, **grid},
        height=420,
        margin={"l": 60, "r": 12, "t": 34, "b": 48},
        dragmode=False,
        meta={"smallest_width": 420},
    )


def _marked(x: Sequence[int], y: Any, colour: str, texts: Sequence[str], **own: Any) -> dict[str, Any]:
    """Returns the trace of a line with a mark at each point; `texts` are said on hover."""
    return line(x, y, colour, mode="lines+markers", **hover(texts), **own)
