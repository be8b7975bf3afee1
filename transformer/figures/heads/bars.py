"""Heads in bars and dots: where one looks, which matter most, a head's weights against what hiding tokens costs."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.heads.tables import loses, typeset
from transformer.figures.labels import hover_label
from transformer.model.kinds import AttentionKind, KindName


@dataclass(frozen=True)
class Bar:
    """One head in the ranking."""

    name: str
    kind: KindName
    value: float
    low: float | None = None
    """The ends of its interval."""
    high: float | None = None


def ranking(bars: Sequence[Bar], *, quantity: str, dark: bool = False) -> go.Figure:
    """A dot for each head, the first one on top, with its interval where it has one; 0 is drawn as a line."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    for kind in AttentionKind:
        places = [place for place, bar in enumerate(bars) if bar.kind == kind]
        if not places:
            continue
        own = [bars[place] for place in places]
        has_interval = all(bar.low is not None and bar.high is not None for bar in own)
        fig.add_scatter(
            x=[bar.value for bar in own],
            y=places,
            mode="markers",
            name=kind.label,
            marker={"color": theme.kind_colour(kind, dark), "size": 8},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [(bar.high or 0) - bar.value for bar in own],
                "arrayminus": [bar.value - (bar.low or 0) for bar in own],
                "width": 0,
                "thickness": 2,
            }
            if has_interval
            else None,
            customdata=[_interval(bar) for bar in own],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        )
    names = [f'<span style="color:{theme.kind_colour(bar.kind, dark)}">{bar.name}</span>' for bar in bars]
    fig.update_yaxes(tickvals=list(range(len(bars))), ticktext=names, range=[len(bars) - 0.5, -0.5], showline=False)
    fig.update_yaxes(ticks="", tickfont={"size": 12})
    fig.update_xaxes(title={"text": quantity}, side="top", nticks=6, showgrid=True, gridcolor=colours.line)
    fig.add_vline(x=0, line={"color": colours.quiet, "width": 1})
    fig.update_layout(
        height=64 + 20 * len(bars), showlegend=False, margin={"l": 150, "r": 12, "t": 52, "b": 8, "autoexpand": False}
    )
    fig.update_layout(meta={"smallest_width": 360})
    return fig


def profile_bars(
    values: Sequence[float], even: Sequence[float], titles: Sequence[str], *, kind: KindName, dark: bool = False
) -> go.Figure:
    """A bar for each place that a head may look at, with a tick where an even head's would end."""
    if not len(values) == len(even) == len(titles):
        raise ValueError(f"{len(values)} values, {len(even)} of an even head and {len(titles)} titles must be as many")
    colours, colour = theme.palette(dark), theme.kind_colour(kind, dark)
    fig = theme.apply(go.Figure(), dark)
    fig.add_bar(
        x=list(values),
        y=list(range(len(values))),
        orientation="h",
        width=0.5,
        marker={"color": colour, "line": {"width": 0}},
        customdata=[
            f"{title}: {v:.3f}, an even head {e:.3f}" for title, v, e in zip(titles, values, even, strict=True)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    for place, (value, tick) in enumerate(zip(values, even, strict=True)):
        font = {"size": 12, "color": colours.text}
        right = {"showarrow": False, "xanchor": "left", "xshift": 4, "font": font}
        fig.add_annotation(x=max(value, tick), y=place, text=f"{value:.2f}", **right)
    fig.add_scatter(
        x=list(even),
        y=list(range(len(values))),
        mode="markers",
        marker={"symbol": "line-ns", "size": 13, "line": {"width": 1.5, "color": colours.quiet}},
        hoverinfo="skip",
    )
    fig.update_yaxes(tickvals=list(range(len(values))), ticktext=list(titles), range=[len(values) - 0.4, -0.6])
    fig.update_yaxes(ticks="", showline=False, tickfont={"size": 13}, ticklabelstandoff=6)
    fig.update_xaxes(range=[0, 1.02], showticklabels=False, ticks="", showline=False)
    width = 16 + 6.4 * max(map(len, titles), default=0)
    fig.update_layout(height=14 + 23 * len(values), showlegend=False, bargap=0.5)
    fig.update_layout(margin={"l": width, "r": 36, "t": 4, "b": 4, "autoexpand": False}, meta={"smallest_width": 320})
    return fig


def weight_against_effect(
    weights: Float[ndarray, "target source"],
    effect: Float[ndarray, "target source"],
    targets: Sequence[str],
    sources: Sequence[str],
    *,
    kind: KindName,
    dark: bool = False,
) -> go.Figure:
    """Every cell of one head as a dot: its weight to the right, what erasing that source token costs upwards."""
    colours = theme.palette(dark)
    texts = [
        f"<b>{hover_label(target)}</b> looks at <b>{hover_label(source)}</b> with {weights[row, column]:.3g}"
        f"<br>and {loses(effect[row, column])} without it"
        for row, target in enumerate(targets)
        for column, source in enumerate(sources)
    ]
    fig = theme.apply(go.Figure(), dark)
    fig.add_scatter(
        x=weights.ravel(),
        y=effect.ravel(),
        mode="markers",
        marker={"color": theme.kind_colour(kind, dark), "size": 7, "opacity": 0.55},
        customdata=texts,
        hovertemplate="%{customdata}<extra></extra>",
    )
    fig.update_xaxes(title={"text": "weight"}, range=[-0.03, 1.03], nticks=6)
    fig.update_yaxes(title={"text": "nats lost without the token"}, zeroline=True, zerolinecolor=colours.line)
    fig.update_layout(height=320, showlegend=False, margin={"l": 60, "r": 12, "t": 12, "b": 48})
    fig.update_layout(meta={"smallest_width": 320})
    return fig


def _interval(bar: Bar) -> tuple[str, str]:
    value = typeset(f"{bar.value:+.3g}")
    if bar.low is None or bar.high is None:
        return bar.name, value
    low, high = (typeset(f"{end:+.3g}") for end in (bar.low, bar.high))
    return bar.name, f"{value}  (95 %: {low} to {high})"
