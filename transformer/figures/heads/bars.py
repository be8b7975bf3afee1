"""Heads in bars and dots: where one looks, which matter most, weights against the cost of hiding tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import monospace, panel, row_axis, token_labels, upright
from transformer.figures.bars import bars as horizontal_bars
from transformer.figures.heads.tables import loses
from transformer.figures.labels import hover_label, label_width, typeset
from transformer.figures.lines import points
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
    """Draws a dot for each head, the first one on top, with its interval where it has one; 0 is drawn as a line."""
    traces = []
    for kind in AttentionKind:
        places = [place for place, bar in enumerate(bars) if bar.kind == kind]
        own = [bars[place] for place in places]
        if not own:
            continue
        trace: dict[str, Any] = {
            "type": "scatter", "x": [bar.value for bar in own], "y": places, "mode": "markers", "name": kind.label,
            "marker": {"color": theme.kind_colour(kind, dark), "size": 8},
            "customdata": [_interval(bar) for bar in own],
            "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
        }  # fmt: skip
        if all(bar.low is not None and bar.high is not None for bar in own):
            above = [(bar.high or 0) - bar.value for bar in own]
            below = [bar.value - (bar.low or 0) for bar in own]
            ends = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
            trace["error_x"] = {**ends, "width": 0, "thickness": 2}
        traces.append(trace)
    names = [f'<span style="color:{theme.kind_colour(bar.kind, dark)}">{bar.name}</span>' for bar in bars]
    return theme.figure(
        traces,
        dark,
        shapes=[upright(0, theme.palette(dark).quiet)],
        xaxis={"title": {"text": quantity}, "side": "top", "nticks": 6, "showgrid": True},
        yaxis=row_axis(names, tickfont={"size": 12}),
        height=64 + 20 * len(bars),
        showlegend=False,
        margin={"l": 150, "r": 12, "t": 52, "b": 8, "autoexpand": False},
        meta={"smallest_width": 360},
    )


def profile_bars(
    values: Sequence[float], even: Sequence[float], titles: Sequence[str], *, kind: KindName, dark: bool = False
) -> go.Figure:
    """Draws a bar for each place that a head may look at, with a tick where an even head's would end."""
    if not len(values) == len(even) == len(titles):
        raise ValueError(f"{len(values)} values, {len(even)} of an even head and {len(titles)} titles must be as many")
    colours = theme.palette(dark)
    texts = [f"{title}: {v:.3f}, a uniform head {e:.3f}" for title, v, e in zip(titles, values, even, strict=True)]
    look = {"symbol": "line-ns", "size": 13, "line": {"width": 1.5, "color": colours.quiet}}
    marks = points(list(even), list(range(len(values))), marker=look)
    font = {"size": 12, "color": colours.text}
    numbers = [
        {"x": max(value, tick), "y": place, "text": f"{value:.2f}", "xanchor": "left", "xshift": 4, "font": font}
        for place, (value, tick) in enumerate(zip(values, even, strict=True))
    ]
    return theme.figure(
        [horizontal_bars(list(values), texts, theme.kind_colour(kind, dark), width=0.5), marks],
        dark,
        annotations=numbers,
        xaxis={"range": [0, 1.02], "showticklabels": False},
        yaxis=row_axis(titles, range=[len(values) - 0.4, -0.6], tickfont={"size": 13}, ticklabelstandoff=6),
        height=14 + 23 * len(values),
        showlegend=False,
        bargap=0.5,
        margin={"l": 16 + 6.4 * max(map(len, titles), default=0), "r": 36, "t": 4, "b": 4, "autoexpand": False},
        meta={"smallest_width": 320},
    )


def weight_against_effect(
    weights: Float[ndarray, "target source"],
    effect: Float[ndarray, "target source"],
    targets: Sequence[str],
    sources: Sequence[str],
    *,
    kind: KindName,
    dark: bool = False,
) -> go.Figure:
    """Draws every entry of one head as a dot: its weight to the right, the cost of erasing its source token upwards."""
    texts = [
        f"<b>{hover_label(target)}</b> looks at <b>{hover_label(source)}</b> with {weights[row, column]:.3g}"
        f"<br>and {loses(effect[row, column])} without it"
        for row, target in enumerate(targets)
        for column, source in enumerate(sources)
    ]
    look = {"color": theme.kind_colour(kind, dark), "size": 7, "opacity": 0.55}
    dots = points(weights.ravel(), effect.ravel(), texts, marker=look)
    zero = {"zeroline": True, "zerolinecolor": theme.palette(dark).line}
    return theme.figure(
        [dots],
        dark,
        xaxis={"title": {"text": "weight"}, "range": [-0.03, 1.03], "nticks": 6},
        yaxis={"title": {"text": "nats lost without the token"}, **zero},
        height=320,
        showlegend=False,
        margin={"l": 60, "r": 12, "t": 12, "b": 48},
        meta={"smallest_width": 320},
    )


def dependence_bars(
    weights: Float[ndarray, "layer source"],
    left: Float[ndarray, " source"],
    sources: Sequence[str],
    *,
    written: str,
    whole: float,
    kind: KindName,
    dark: bool = False,
) -> go.Figure:
    """Draws a row for each source token: its weight in each layer, and the probability `left` to the `written` token
    when it is hidden, beside a line at the `whole` one."""
    if not weights.shape[1] == len(left) == len(sources):
        raise ValueError(f"{len(sources)} tokens do not fit weights of {weights.shape} and {len(left)} probabilities")
    colours, n_panels = theme.palette(dark), len(weights) + 1
    panels = [(f"weight in layer {i}", row, theme.kind_colour(kind, dark)) for i, row in enumerate(weights)]
    panels.append((f"probability of {hover_label(written)} without it", left, colours.accent))
    traces, axes = [], {}
    for number, (title, values, colour) in enumerate(panels, start=1):
        end, first = panel(number), (number - 1) / n_panels
        texts = [
            f"<b>{hover_label(key)}</b><br>{title}: {value:.3g}" for key, value in zip(sources, values, strict=True)
        ]
        numbers = [f"\N{NO-BREAK SPACE}{value:.2f}" for value in values]
        ink = {"size": 12, "color": colours.text}
        own = {"xaxis": f"x{end}", "yaxis": "y"}
        traces.append(horizontal_bars(values, texts, colour, numbers=numbers, textfont=ink, width=0.6, **own))
        axes[f"xaxis{end}"] = {
            "domain": [first + 0.02 * (number > 1), first + 1 / n_panels],
            "range": [0, 1.25], "tickvals": [0, 0.5, 1], "showgrid": True, "side": "top", "tickfont": {"size": 12},
            "title": {"text": title, "standoff": 6}, "fixedrange": True,
        }  # fmt: skip
    last = panel(n_panels)
    ends = {"xref": f"x{last}", "yref": "y domain", "x0": whole, "x1": whole, "y0": 0, "y1": 1}
    margin = label_width(sources) * 13 * 0.6 + 20
    return theme.figure(
        traces,
        dark,
        **axes,
        shapes=[{"type": "line", **ends, "line": {"color": colours.text, "width": 1.5, "dash": "dot"}}],
        yaxis=row_axis(token_labels(sources, dark), tickfont=monospace(13), ticklabelstandoff=5, fixedrange=True),
        height=76 + 24 * len(sources),
        bargap=0.3,
        dragmode=False,
        margin={"l": margin, "r": 8, "t": 56, "b": 8, "autoexpand": False},
        meta={"smallest_width": round(margin + 150 * n_panels)},
    )


def _interval(bar: Bar) -> tuple[str, str]:
    value = typeset(f"{bar.value:+.3g}")
    if bar.low is None or bar.high is None:
        return bar.name, value
    low, high = (typeset(f"{end:+.3g}") for end in (bar.low, bar.high))
    return bar.name, f"{value}  (95 %: {low} to {high})"
