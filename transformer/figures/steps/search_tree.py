"""A beam search as a tree that grows to the right: a column a step, the candidates of a step below one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.figures.steps.branches import elbow

_ROW, _CHARACTER = 40, 6.8
"""Pixels of a candidate's height, and of a character of its label."""
_SYMBOLS = {"goes on": "circle", "ended": "diamond", "pruned": "x-thin-open", "left over": "circle-open"}
Fate = Literal["goes on", "ended", "pruned", "left over"]


@dataclass(frozen=True)
class Candidate:
    """One candidate as it is drawn."""

    step: int
    token: str
    parent: int | None
    """Index of the candidate that it continues."""
    log_prob: float
    score: float
    fate: Fate
    on_best: bool
    why: str
    """What became of it, in words."""


def search_figure(candidates: Sequence[Candidate], *, chosen: int | None = None, dark: bool = False) -> go.Figure:
    """Draws the tree, each candidate with its token and score; the best result's way in the accent colour, the chosen
    candidate larger. The first customdata of a point is its index."""
    colours = theme.palette(dark)
    rows: list[int] = []
    filled: dict[int, int] = {}
    for candidate in candidates:
        rows.append(filled.get(candidate.step, 0))
        filled[candidate.step] = rows[-1] + 1
    traces: list[dict[str, Any]] = []
    for best, colour, width in ((False, colours.faint, 1.0), (True, colours.accent, 2.5)):
        x: list[float | None] = []
        y: list[float | None] = []
        for row, candidate in zip(rows, candidates, strict=True):
            if candidate.parent is not None and candidate.on_best == best:
                across, down = elbow((candidate.step - 1, rows[candidate.parent]), (candidate.step, row))
                x += [*across, None]
                y += [*down, None]
        line = {"color": colour, "width": width}
        traces.append(
            {"type": "scatter", "x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}
        )
    labels = axis_labels([candidate.token for candidate in candidates], quiet=colours.quiet, faint=colours.faint)
    for fate, symbol in _SYMBOLS.items():
        kept = [i for i, candidate in enumerate(candidates) if candidate.fate == fate]
        if not kept:
            continue
        ink = colours.quiet if fate == "pruned" else colours.text
        paints = [colours.accent if candidates[i].on_best else ink for i in kept]
        edges = {"width": [4 if i == chosen else 1.5 for i in kept], "color": paints}
        sizes = [15 if i == chosen else 9 for i in kept]
        traces.append(
            {
                "type": "scatter", "mode": "markers+text", "name": fate,
                "x": [candidates[i].step for i in kept], "y": [rows[i] for i in kept],
                "marker": {"symbol": symbol, "size": sizes, "color": paints, "line": edges, "opacity": 1},
                "text": [f"{labels[i]} {_number(candidates[i].score)}" for i in kept],
                "textposition": "bottom center",
                "textfont": {"size": 11, "family": theme.MONOSPACE, "color": ink},
                "customdata": [[i, _hover(candidates[i])] for i in kept],
                "hovertemplate": "%{customdata[1]}<extra></extra>",
                "selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}},
            }
        )  # fmt: skip
    # The token, its score, some air.
    column = (label_width([candidate.token for candidate in candidates]) + 11) * _CHARACTER
    n_steps, n_rows = max(candidate.step for candidate in candidates) + 1, max(rows) + 1
    quiet = {"showgrid": False, "showline": False, "ticks": "", "fixedrange": True}
    layout = {
        "xaxis": quiet
        | {
            "range": [-0.6, n_steps - 0.4],
            "tickvals": list(range(n_steps)),
            "side": "top",
            "title": {"text": "step", "standoff": 4},
        },
        "yaxis": quiet | {"range": [n_rows - 0.3, -0.5], "showticklabels": False},
        "height": round(90 + n_rows * _ROW),
        "margin": {"l": 4, "r": 4, "t": 52, "b": 34},
        "legend": {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "font": {"size": 12}, "itemclick": False},
        "dragmode": False,
        "meta": {"smallest_width": round(n_steps * column)},
    }
    return theme.apply(go.Figure(data=traces, layout=layout), dark)


def _hover(candidate: Candidate) -> str:
    return (
        f"<b>{hover_label(candidate.token)}</b>, step {candidate.step}<br>log-probability {candidate.log_prob:.6g} nats"
        f"<br>score {candidate.score:.6g}<br>{hover_label(candidate.why)}"
    )


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
