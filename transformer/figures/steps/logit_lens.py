"""The logit lens of a decoding step, and horizontal bars of what chose one token over another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.axes import level, monospace, row_axis, token_labels, upright
from transformer.figures.bars import bars, ticks
from transformer.figures.heatmap import cells
from transformer.figures.labels import hover_label, label_width, typeset
from transformer.figures.lines import points
from transformer.model.kinds import KindName

_ROW, _CHARACTER = 26, 7.4
"""Pixels of a bar with its gap, and of a character of a label."""
_LONGEST = 13
"""The most characters of a token on its cell."""


@dataclass(frozen=True)
class Depth:
    """The prediction at one depth of the decoder."""

    name: str
    tokens: tuple[str, ...]
    """The tokens, the most probable first."""
    probabilities: tuple[float, ...]
    rank: int
    """The rank of the followed token; 1 for the most probable."""
    probability: float
    """The probability of the followed token."""
    before: tuple[int, float] | None = None
    """Rank and probability of that token in another state."""


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
    columns = range(-len(places), 0)
    colours = theme.palette(dark)
    inks = [colours.accent, colours.quiet]
    ranks = [_ranks(x, found, ink) for x, found, ink in zip(columns, places, inks, strict=False)]
    texts = [
        [f"<b>{hover_label(t)}</b><br>{hover_label(d.name)}: probability {p:.6g}" for t, p in _pairs(d)] for d in depths
    ]
    probabilities = np.array([depth.probabilities for depth in depths])
    left = label_width([depth.name for depth in depths]) * _CHARACTER + 16
    return theme.figure(
        [cells(probabilities, texts, scale=theme.sequential(dark), gap=2), *ranks],
        dark,
        annotations=[text for y, depth in enumerate(depths) for text in _written(depth, y, dark)],
        xaxis={
            "range": [columns[0] - 0.5, n - 0.5],
            "tickvals": [*columns, *range(n)],
            "ticktext": [*names, *map(_place, range(1, n + 1))],
            "side": "top",
            "fixedrange": True,
        },
        yaxis=row_axis([hover_label(depth.name) for depth in depths], fixedrange=True),
        height=round(46 + len(depths) * 44),
        margin={"l": left, "r": 8, "t": 34, "b": 8, "autoexpand": False},
        dragmode=False,
        meta={"smallest_width": round(left + (n + len(places)) * 102)},
    )


def _ranks(x: int, found: Sequence[tuple[int, float]], ink: str) -> dict[str, Any]:
    written = [f"{rank:,} ({_share(p)})" for rank, p in found]
    said = [f"rank {rank:,}, probability {p:.6g}" for rank, p in found]
    font = {"color": ink, "size": 13}
    return points([x for _ in found], list(range(len(found))), said, mode="text", text=written, textfont=font)


def _written(depth: Depth, y: int, dark: bool) -> Iterator[dict[str, Any]]:
    """Yields each token of a depth as a note on its cell, with its probability under it."""
    scale = theme.sequential(dark)
    for x, (label, (token, share)) in enumerate(zip(token_labels(depth.tokens, dark), _pairs(depth), strict=True)):
        shown = hover_label(token[:_LONGEST]) if share > 0.25 or len(token) > _LONGEST else label
        font = monospace(12, color=theme.ink_on(scale, share))
        yield {"x": x, "y": y, "text": f"{shown}<br>{_share(share)}", "font": font}


@dataclass(frozen=True)
class Share:
    """The contribution of one part."""

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
    colours = theme.palette(dark)
    paints = [colours.faint if share.kind is None else theme.kind_colour(share.kind, dark) for share in shares]
    texts = [f"<b>{hover_label(share.name)}</b><br>{share.value:+.6g}" for share in shares]
    numbers = [typeset(f"{share.value:+.2f}") for share in shares]
    ink = {"size": 12, "color": colours.text}
    values = [share.value for share in shares]
    traces = [bars(values, texts, [*paints[:-1], colours.accent], numbers=numbers, textfont=ink)]
    marked = {row: share.before for row, share in enumerate(shares) if share.before is not None}
    if marked:
        said = [f"{before_name}: {value:+.6g}" for value in marked.values()]
        traces.append(ticks(list(marked.values()), said, colours, rows=list(marked)))
    reach = 1.3 * max(max(abs(share.value), abs(share.before or 0.0)) for share in shares) or 1.0
    left = label_width([share.name for share in shares]) * _CHARACTER + 16
    title = {"text": f"◂ for {_short(lowered)} · logits · for {_short(raised)} ▸", "standoff": 6}
    across = {"range": [-reach, reach], "side": "top", "nticks": 6, "tickfont": {"size": 12}, "title": title}
    named = {"fixedrange": True, "ticklabelstandoff": 5, "tickfont": {"size": 13}}
    return theme.figure(
        traces,
        dark,
        shapes=[upright(0, colours.quiet), level(len(shares) - 1.5, colours.line)],
        xaxis={"showgrid": True, "fixedrange": True} | across,
        yaxis=row_axis([hover_label(share.name) for share in shares], **named),
        height=round(66 + len(shares) * _ROW),
        margin={"l": left, "r": 8, "t": 56, "b": 8, "autoexpand": False},
        bargap=0.3,
        dragmode=False,
        meta={"smallest_width": round(left + 220)},
    )


def _pairs(depth: Depth) -> list[tuple[str, float]]:
    return list(zip(depth.tokens, depth.probabilities, strict=True))


def _short(token: str) -> str:
    return hover_label(token.strip("▁")[:14] or token[:14])


def _share(p: float) -> str:
    return f"{p:.2f}" if p >= 0.005 else "<0.01"


def _place(n: int) -> str:
    return f"{n}" + {1: "st", 2: "nd", 3: "rd"}.get(n, "th")
