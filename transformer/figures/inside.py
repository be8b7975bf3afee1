"""Inside one decoding step: what each depth would predict, and lying bars of what chose one token over another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.figures.theme import Kind

_ROW, _CHARACTER = 26, 7.4
"""Pixels: of a bar with its gap, of a character of a label."""


@dataclass(frozen=True)
class Depth:
    """What would be predicted at one depth of the decoder."""

    name: str
    tokens: tuple[str, ...]
    """The most probable first."""
    probabilities: tuple[float, ...]
    rank: int
    """Of the token that is followed; 1 for the most probable."""
    probability: float
    """Of that token."""


def lens_figure(depths: Sequence[Depth], followed: str, *, dark: bool = False) -> go.Figure:
    """A row for each depth, its likeliest tokens coloured by probability, and where the followed token ranks there."""
    n = len(depths[0].tokens)
    if any(len(depth.tokens) != n for depth in depths):
        raise ValueError(f"every depth needs {n} tokens")
    colours, scale = theme.palette(dark), theme.sequential(dark)
    shares = np.array([depth.probabilities for depth in depths])
    fig = theme.apply(go.Figure(), dark)
    fig.add_heatmap(
        z=shares, zmin=0, zmax=1, colorscale=scale, showscale=False, xgap=2, ygap=2,
        customdata=[
            [f"<b>{hover_label(t)}</b><br>{hover_label(d.name)}: probability {p:.6g}" for t, p in _cells(d)]
            for d in depths
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    for y, depth in enumerate(depths):
        labels = axis_labels(depth.tokens, quiet=colours.quiet, faint=colours.faint)
        for x, (label, (token, share)) in enumerate(zip(labels, _cells(depth), strict=True)):
            dark_cell = share > 0.25
            shown = hover_label(token[:14]) if dark_cell else label
            fig.add_annotation(
                x=x, y=y, text=f"{shown} {_share(share)}", showarrow=False,
                font={"family": theme.MONOSPACE, "size": 12, "color": theme.ink_on(scale, share)},
            )  # fmt: skip
    fig.add_scatter(
        x=[n + 0.1] * len(depths), y=list(range(len(depths))), mode="text",
        text=[f"{depth.rank:,} ({_share(depth.probability)})" for depth in depths],
        textfont={"color": colours.accent, "size": 13}, showlegend=False,
        customdata=[f"rank {depth.rank:,}, probability {depth.probability:.6g}" for depth in depths],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    left = label_width([depth.name for depth in depths]) * _CHARACTER + 16
    bare = {"showgrid": False, "showline": False, "ticks": "", "fixedrange": True}
    fig.update_xaxes(
        bare
        | {
            "range": [-0.5, n + 0.7],
            "tickvals": [*range(n), n + 0.1],
            "ticktext": [*map(_place, range(1, n + 1)), f"rank of {_short(followed)}"],
            "side": "top",
        }
    )
    names = [hover_label(depth.name) for depth in depths]
    fig.update_yaxes(
        bare | {"range": [len(depths) - 0.5, -0.5], "tickvals": list(range(len(depths))), "ticktext": names}
    )
    return fig.update_layout(
        height=round(46 + len(depths) * 34),
        margin={"l": left, "r": 8, "t": 34, "b": 8, "autoexpand": False},
        dragmode=False,
        meta={"smallest_width": round(left + (n + 1.2) * 112)},
    )


@dataclass(frozen=True)
class Share:
    """One part's contribution as it is drawn."""

    name: str
    value: float
    kind: Kind | None = None
    """The attention whose colour it has; None for all other parts."""
    before: float | None = None
    """Its value in another state."""


def contribution_bars(
    shares: Sequence[Share], *, raised: str, lowered: str, before_name: str = "", dark: bool = False
) -> go.Figure:
    """A bar for each part around 0: to the right for the one token, to the left for the other; the last is the sum."""
    colours = theme.palette(dark)
    rows = list(range(len(shares)))
    fig = theme.apply(go.Figure(), dark)
    paints = [colours.faint if s.kind is None else theme.kind_colour(s.kind, dark) for s in shares]
    paints[-1] = colours.accent
    fig.add_bar(
        x=[share.value for share in shares], y=rows, orientation="h", marker={"color": paints},
        text=[_signed(share.value) for share in shares], textposition="outside", cliponaxis=False,
        textfont={"size": 12, "color": colours.text},
        customdata=[f"<b>{hover_label(share.name)}</b><br>{share.value:+.6g}" for share in shares],
        hovertemplate="%{customdata}<extra></extra>", showlegend=False,
    )  # fmt: skip
    marked = [(row, share.before) for row, share in zip(rows, shares, strict=True) if share.before is not None]
    if marked:
        fig.add_scatter(
            x=[value for _, value in marked], y=[row for row, _ in marked], mode="markers",
            marker={"symbol": "line-ns-open", "size": 16, "line": {"width": 2}, "color": colours.text},
            customdata=[f"{before_name}: {value:+.6g}" for _, value in marked],
            hovertemplate="%{customdata}<extra></extra>", showlegend=False,
        )  # fmt: skip
    reach = 1.3 * max(max(abs(share.value), abs(share.before or 0.0)) for share in shares) or 1.0
    left = label_width([share.name for share in shares]) * _CHARACTER + 16
    fig.add_vline(x=0, line={"color": colours.quiet, "width": 1})
    fig.add_hline(y=len(shares) - 1.5, line={"color": colours.line, "width": 1})
    fig.update_xaxes(
        range=[-reach, reach], fixedrange=True, showgrid=True, gridcolor=colours.line, showline=False, side="top",
        ticks="", nticks=6, tickfont={"size": 12},
        title={"text": f"◂ for {_short(lowered)} · logits · for {_short(raised)} ▸", "standoff": 6},
    )  # fmt: skip
    fig.update_yaxes(
        range=[len(shares) - 0.5, -0.5], tickvals=rows, ticktext=[hover_label(share.name) for share in shares],
        showline=False, ticks="", fixedrange=True, ticklabelstandoff=5, tickfont={"size": 13},
    )  # fmt: skip
    return fig.update_layout(
        height=round(66 + len(shares) * _ROW),
        margin={"l": left, "r": 8, "t": 56, "b": 8, "autoexpand": False},
        bargap=0.3,
        dragmode=False,
        meta={"smallest_width": round(left + 220)},
    )


def _cells(depth: Depth) -> list[tuple[str, float]]:
    return list(zip(depth.tokens, depth.probabilities, strict=True))


def _short(token: str) -> str:
    return hover_label(token.strip("▁")[:14] or token[:14])


def _share(p: float) -> str:
    return f"{p:.2f}" if p >= 0.005 else "<0.01"


def _place(n: int) -> str:
    return f"{n}" + {1: "st", 2: "nd", 3: "rd"}.get(n, "th")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
