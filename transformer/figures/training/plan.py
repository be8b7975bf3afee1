"""Figures of a training plan: sentence lengths of a corpus, the learning rate by step, the memory needed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import upright
from transformer.figures.labels import hover_label
from transformer.figures.lines import line

_MAX_BARS = 60


def length_bars(
    source: Int[ndarray, " pair"], target: Int[ndarray, " pair"]
) -> tuple[tuple[str, ...], Float[ndarray, "side bar"]]:
    """Returns the lengths of each bar ("3" or "3 to 4"), and the share of each side's sentences in per cent."""
    longest = int(max(source.max(), target.max()))
    width = max(1, -(-longest // _MAX_BARS))
    edges = np.arange(0, longest + width, width) + 1
    labels = tuple(f"{edge}" if width == 1 else f"{edge} to {edge + width - 1}" for edge in edges)
    counts = [np.histogram(lengths, bins=np.append(edges, edges[-1] + width))[0] for lengths in (source, target)]
    return labels, np.array([100 * count / max(1, len(source)) for count in counts])


def length_figure(
    labels: Sequence[str],
    shares: Float[ndarray, "side bar"],
    names: Sequence[str],
    *,
    limit: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws two bars for each length, as `length_bars` counts them; sentences past the `limit` are not trained on."""
    colours = theme.palette(dark)
    ends = [[int(end) for end in label.split(" to ")] for label in labels]
    width, longest = ends[0][-1] - ends[0][0] + 1, ends[-1][-1]
    middles = np.array([first + (width - 1) / 2 for first, *_ in ends])
    bars = [
        {
            "type": "bar", "x": middles, "y": share, "width": 0.45 * width, "offset": (shift - 0.5) * 0.9 * width,
            "name": name, "marker": {"color": colour}, "customdata": np.array(labels),
            "hovertemplate": f"%{{customdata}} tokens: %{{y:.3g}} %<extra>{hover_label(name)}</extra>",
        }
        for share, name, colour, shift in zip(shares, names, (colours.quiet, colours.accent), (0.0, 0.5), strict=True)
    ]  # fmt: skip
    marked: dict[str, Any] = {}
    if limit is not None and limit < longest:
        corner = {"yref": "paper", "xanchor": "left", "yanchor": "top", "xshift": 4}
        marked["shapes"] = [upright(limit + 0.5, colours.text, dash="dot")]
        marked["annotations"] = [{"x": limit + 0.5, "y": 1, "text": "skipped from here on", **corner}]
    across = {"title": {"text": "tokens in a sentence, with its end mark"}, "showline": True}
    up = {"title": {"text": "sentences, %"}, "showgrid": True}
    return _figure(bars, across, up, height=260, above=30, showlegend=True, bargap=0, **marked, dark=dark)


def schedule_figure(
    steps: Int[ndarray, " point"], rates: Float[ndarray, " point"], *, warmup_steps: int = 0, dark: bool = False
) -> go.Figure:
    """Draws the learning rate over the steps of a run; the end of the warm-up is marked."""
    colours = theme.palette(dark)
    rate = line(steps, rates, colours.accent, hovertemplate="step %{x:,}: %{y:.3g}<extra></extra>")
    inside = steps[0] < warmup_steps < steps[-1]
    shapes = [upright(warmup_steps, colours.quiet, dash="dot")] if inside else []
    across = {"title": {"text": "step"}, "showline": True, "rangemode": "tozero", "nticks": 5}
    up = {"title": {"text": "learning rate"}, "showgrid": True, "rangemode": "tozero", "nticks": 4}
    up |= {"exponentformat": "power"}
    return _figure([rate], across, up, height=170, shapes=shapes, showlegend=False, dark=dark)


def memory_figure(parts: Mapping[str, int], *, dark: bool = False) -> go.Figure:
    """Draws a bar for each part of the memory, in megabytes."""
    bars = {
        "type": "bar", "orientation": "h", "x": [size / 1e6 for size in parts.values()], "y": list(parts),
        "marker": {"color": theme.palette(dark).accent}, "hovertemplate": "%{y}: %{x:.3g} MB<extra></extra>",
    }  # fmt: skip
    across = {"title": {"text": "memory, MB"}, "showline": True, "showgrid": True}
    return _figure([bars], across, {"autorange": "reversed"}, height=220, showlegend=False, bargap=0.3, dark=dark)


def _figure(
    traces: Sequence[dict[str, Any]],
    across: dict[str, Any],
    up: dict[str, Any],
    *,
    above: int = 10,
    dark: bool,
    **layout: Any,
) -> go.Figure:
    """Draws the traces with as much room for labels as they take."""
    axes = {"xaxis": across | {"automargin": True}, "yaxis": up | {"automargin": True}}
    return theme.figure(traces, dark, **axes, margin={"l": 8, "r": 8, "t": above, "b": 8}, **layout)
