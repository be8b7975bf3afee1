"""The logit lens of a decoding step, and horizontal bars of what chose one token over another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.model.kinds import KindName

_ROW, _CHARACTER = 26, 7.4
"""Pixels: of a bar with its gap, of a character of a label."""
_LONGEST = 13
"""Characters of a token that are written out."""


@dataclass(frozen=True)
class Depth:
    """The prediction at one depth of the decoder."""

    name: str
    tokens: tuple[str, ...]
    """The most probable first."""
    probabilities: tuple[float, ...]
    rank: int
    """Rank of the followed token; 1 for the most probable."""
    probability: float
    """Probability of the followed token."""
    before: tuple[int, float] | None = None
    """That rank and probability in another state."""


def lens_figure(depths: Sequence[Depth], followed: str, *, before_name: str = "", dark: bool = False) -> go.Figure:
    """Draws a row for each depth: the rank of the followed token, and the likeliest tokens coloured by probability."""
    n = len(depths[0].tokens)
    if any(len(depth.tokens) != n for depth in depths):
        raise ValueError(f"every depth needs {n} tokens")
    places = [[(depth.rank, depth.probability) for depth in depths]]
    names = [f"rank of {_short(followed)}"]
    if depths[0].before is not None:
        places.append([depth.before or (0, 0.0) for depth in depths])
        names.append(before_name)
    columns = [-len(places) + column for column in range(len(places))]
    colours = theme.palette(dark)
    inks = [colours.accent, colours.quiet]
    texts = [_ranks(x, found, ink) for x, found, ink in zip(columns, places, inks, strict=False)]
    left = label_width([depth.name for depth in depths]) * _CHARACTER + 16
    bare = {"showgrid": False, "showline": False, "ticks": "", "fixedrange": True}
    layout = {
        "annotations": [note for y, depth in enumerate(depths) for note in _written(depth, y, dark)],
        "xaxis": bare
        | {
            "range": [columns[0] - 0.5, n - 0.5],
            "tickvals": [*columns, *range(n)],
            "ticktext": [*names, *map(_place, range(1, n + 1))],
            "side": "top",
        },
        "yaxis": bare
        | {
            "range": [len(depths) - 0.5, -0.5],
            "tickvals": list(range(len(depths))),
            "ticktext": [hover_label(depth.name) for depth in depths],
        },
        "height": round(46 + len(depths) * 44),
        "margin": {"l": left, "r": 8, "t": 34, "b": 8, "autoexpand": False},
        "dragmode": False,
        "meta": {"smallest_width": round(left + (n + len(places)) * 102)},
    }
    return theme.apply(go.Figure(data=[_heat(depths, dark), *texts], layout=layout), dark)


def _heat(depths: Sequence[Depth], dark: bool) -> dict[str, Any]:
    return {
        "type": "heatmap", "z": np.array([depth.probabilities for depth in depths]), "zmin": 0, "zmax": 1,
        "colorscale": theme.sequential(dark), "showscale": False, "xgap": 2, "ygap": 2,
        "customdata": [
            [f"<b>{hover_label(t)}</b><br>{hover_label(d.name)}: probability {p:.6g}" for t, p in _cells(d)]
            for d in depths
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _ranks(x: int, found: Sequence[tuple[int, float]], ink: str) -> dict[str, Any]:
    return {
        "type": "scatter", "x": [x] * len(found), "y": list(range(len(found))), "mode": "text",
        "text": [f"{rank:,} ({_share(p)})" for rank, p in found],
        "textfont": {"color": ink, "size": 13}, "showlegend": False,
        "customdata": [f"rank {rank:,}, probability {p:.6g}" for rank, p in found],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _written(depth: Depth, y: int, dark: bool) -> Iterator[dict[str, Any]]:
    """Each token of a depth with its probability under it."""
    colours, scale = theme.palette(dark), theme.sequential(dark)
    labels = axis_labels(depth.tokens, quiet=colours.quiet, faint=colours.faint)
    for x, (label, (token, share)) in enumerate(zip(labels, _cells(depth), strict=True)):
        shown = hover_label(token[:_LONGEST]) if share > 0.25 or len(token) > _LONGEST else label
        yield {
            "x": x, "y": y, "text": f"{shown}<br>{_share(share)}", "showarrow": False,
            "font": {"family": theme.MONOSPACE, "size": 12, "color": theme.ink_on(scale, share)},
        }  # fmt: skip


@dataclass(frozen=True)
class Share:
    """One part's contribution as it is drawn."""

    name: str
    value: float
    kind: KindName | None = None
    """The attention whose colour it has; None for all other parts."""
    before: float | None = None
    """Its value in another state."""


def contribution_bars(
    shares: Sequence[Share], *, raised: str, lowered: str, before_name: str = "", dark: bool = False
) -> go.Figure:
    """Draws a bar for each part around 0, right for one token, left for the other; the last is the sum."""
    colours, rows = theme.palette(dark), list(range(len(shares)))
    marked = [(row, share.before) for row, share in zip(rows, shares, strict=True) if share.before is not None]
    marks = {
        "type": "scatter", "x": [value for _, value in marked], "y": [row for row, _ in marked], "mode": "markers",
        "marker": {"symbol": "line-ns-open", "size": 16, "line": {"width": 2}, "color": colours.text},
        "customdata": [f"{before_name}: {value:+.6g}" for _, value in marked],
        "hovertemplate": "%{customdata}<extra></extra>", "showlegend": False,
    }  # fmt: skip
    reach = 1.3 * max(max(abs(share.value), abs(share.before or 0.0)) for share in shares) or 1.0
    left = label_width([share.name for share in shares]) * _CHARACTER + 16
    across = {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "y0": len(shares) - 1.5, "y1": len(shares) - 1.5}
    upright = {"type": "line", "yref": "y domain", "y0": 0, "y1": 1, "x0": 0, "x1": 0}
    layout = {
        "shapes": [
            upright | {"line": {"color": colours.quiet, "width": 1}},
            across | {"line": {"color": colours.line, "width": 1}},
        ],
        "xaxis": {
            "range": [-reach, reach], "fixedrange": True, "showgrid": True, "gridcolor": colours.line,
            "showline": False, "side": "top", "ticks": "", "nticks": 6, "tickfont": {"size": 12},
            "title": {"text": f"◂ for {_short(lowered)} · logits · for {_short(raised)} ▸", "standoff": 6},
        },
        "yaxis": {
            "range": [len(shares) - 0.5, -0.5], "tickvals": rows,
            "ticktext": [hover_label(share.name) for share in shares], "showline": False, "ticks": "",
            "fixedrange": True, "ticklabelstandoff": 5, "tickfont": {"size": 13},
        },
        "height": round(66 + len(shares) * _ROW),
        "margin": {"l": left, "r": 8, "t": 56, "b": 8, "autoexpand": False},
        "bargap": 0.3, "dragmode": False, "meta": {"smallest_width": round(left + 220)},
    }  # fmt: skip
    traces = [_bars(shares, dark), *[marks] * bool(marked)]
    return theme.apply(go.Figure(data=traces, layout=layout), dark)


def _bars(shares: Sequence[Share], dark: bool) -> dict[str, Any]:
    colours = theme.palette(dark)
    paints = [colours.faint if s.kind is None else theme.kind_colour(s.kind, dark) for s in shares]
    return {
        "type": "bar", "x": [share.value for share in shares], "y": list(range(len(shares))), "orientation": "h",
        "marker": {"color": [*paints[:-1], colours.accent]},
        "text": [_signed(share.value) for share in shares], "textposition": "outside", "cliponaxis": False,
        "textfont": {"size": 12, "color": colours.text},
        "customdata": [f"<b>{hover_label(share.name)}</b><br>{share.value:+.6g}" for share in shares],
        "hovertemplate": "%{customdata}<extra></extra>", "showlegend": False,
    }  # fmt: skip


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
