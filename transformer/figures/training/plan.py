"""What a run will meet: how long the sentences of a corpus are, and the course of the learning rate."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme

_MOST_BARS = 60


def length_figure(
    source: Int[ndarray, "pair"],
    target: Int[ndarray, "pair"],
    names: Sequence[str],
    *,
    limit: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """How many sentences of each side have how many tokens, in per cent; past the `limit` none is trained on."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    longest = int(max(source.max(), target.max()))
    width = max(1, -(-longest // _MOST_BARS))
    edges = np.arange(0, longest + width, width) + 1
    for lengths, name, colour, shift in (
        (source, names[0], colours.quiet, 0.0),
        (target, names[1], colours.accent, 0.5),
    ):
        counts, _ = np.histogram(lengths, bins=np.append(edges, edges[-1] + width))
        share = 100 * counts / max(1, len(lengths))
        label = [f"{edge}" if width == 1 else f"{edge} to {edge + width - 1}" for edge in edges]
        fig.add_bar(
            x=edges + (width - 1) / 2,
            y=share,
            width=0.45 * width,
            offset=(shift - 0.5) * 0.9 * width,
            name=name,
            marker={"color": colour, "line": {"width": 0}},
            customdata=np.array(label),
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


def _framed(fig: go.Figure, *, height: int, legend: bool) -> go.Figure:
    fig.update_xaxes(automargin=True)
    fig.update_yaxes(automargin=True)
    return fig.update_layout(
        height=height,
        showlegend=legend,
        bargap=0,
        margin={"l": 8, "r": 8, "t": 30 if legend else 10, "b": 8, "autoexpand": True},
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom", "title": {"text": ""}},
    )
