"""Figures of a plan: sentence lengths of a corpus, the learning rate by step, the memory of training."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme

_MOST_BARS = 60


def length_bars(
    source: Int[ndarray, "pair"], target: Int[ndarray, "pair"]
) -> tuple[tuple[str, ...], Float[ndarray, "side bar"]]:
    """The lengths that each bar stands for ("3" or "3 to 4"), and the share of each side's sentences in per cent."""
    longest = int(max(source.max(), target.max()))
    width = max(1, -(-longest // _MOST_BARS))
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
    """Two bars a length, as `length_bars` counts them; past the `limit` no sentence is trained on."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    ends = [[int(end) for end in label.split(" to ")] for label in labels]
    width, longest = ends[0][-1] - ends[0][0] + 1, ends[-1][-1]
    for share, name, colour, shift in zip(shares, names, (colours.quiet, colours.accent), (0.0, 0.5), strict=True):
        fig.add_bar(
            x=np.array([first + (width - 1) / 2 for first, *_ in ends]),
            y=share,
            width=0.45 * width,
            offset=(shift - 0.5) * 0.9 * width,
            name=name,
            marker={"color": colour, "line": {"width": 0}},
            customdata=np.array(labels),
            hovertemplate="%{customdata} tokens: %{y:.3g} %<extra>" + name.replace("<", "&lt;") + "</extra>",
        )
    if limit is not None and limit < longest:
        fig.add_vline(x=limit + 0.5, line={"color": colours.text, "width": 1, "dash": "dot"})
        fig.add_annotation(
            x=limit + 0.5, y=1, yref="paper", text="skipped past here", showarrow=False, xanchor="left", yanchor="top",
            font={"size": 12, "color": colours.quiet}, xshift=4,
        )  # fmt: skip
    fig.update_xaxes(title_text="tokens of a sentence, its end mark included", showline=True)
    fig.update_yaxes(title_text="sentences, %", showgrid=True, gridcolor=colours.line, showline=False, ticks="")
    return _framed(fig, height=260, legend=True)


def schedule_figure(
    steps: Int[ndarray, "point"], rates: Float[ndarray, "point"], *, warmup_steps: int = 0, dark: bool = False
) -> go.Figure:
    """The learning rate over the steps of a run; where the warm-up ends is marked."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    fig.add_scatter(
        x=steps,
        y=rates,
        mode="lines",
        line={"color": colours.accent, "width": 2},
        hovertemplate="step %{x:,}: %{y:.3g}<extra></extra>",
    )
    if steps[0] < warmup_steps < steps[-1]:
        fig.add_vline(x=warmup_steps, line={"color": colours.quiet, "width": 1, "dash": "dot"})
    fig.update_xaxes(title_text="step", showline=True, rangemode="tozero", nticks=5)
    fig.update_yaxes(
        **{"title_text": "learning rate", "rangemode": "tozero", "exponentformat": "power", "nticks": 4},
        **{"showgrid": True, "gridcolor": colours.line, "showline": False, "ticks": ""},
    )
    return _framed(fig, height=170, legend=False)


def memory_figure(parts: Mapping[str, int], *, dark: bool = False) -> go.Figure:
    """A bar for each part of the memory, in megabytes."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    fig.add_bar(
        x=[size / 1e6 for size in parts.values()],
        y=list(parts),
        orientation="h",
        marker={"color": colours.accent, "line": {"width": 0}},
        hovertemplate="%{y}: %{x:.3g} MB<extra></extra>",
    )
    fig.update_xaxes(title_text="memory, MB", showline=True, showgrid=True, gridcolor=colours.line)
    fig.update_yaxes(autorange="reversed", ticks="", showgrid=False)
    return _framed(fig, height=220, legend=False)


def _framed(fig: go.Figure, *, height: int, legend: bool) -> go.Figure:
    fig.update_xaxes(automargin=True)
    fig.update_yaxes(automargin=True)
    return fig.update_layout(
        height=height,
        showlegend=legend,
        bargap=0 if legend else 0.3,
        margin={"l": 8, "r": 8, "t": 30 if legend else 10, "b": 8, "autoexpand": True},
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom", "title": {"text": ""}},
    )
