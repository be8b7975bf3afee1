"""A beam search as a tree that grows to the right: a column a step, the candidates of a step below one another."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.axes import token_labels
from transformer.figures.labels import hover_label, label_width, typeset
from transformer.figures.steps.branches import tree_figure, tree_lines, tree_points

_ROW, _CHARACTER = 40, 6.8
"""Pixels of a candidate's height, and of a character of its label."""
_BESIDE = 11
"""Characters of the score beside a token, with some air."""
_SYMBOLS = {"goes on": "circle", "ended": "diamond", "pruned": "x-thin-open", "left over": "circle-open"}
Fate = Literal["goes on", "ended", "pruned", "left over"]


@dataclass(frozen=True)
class Candidate:
    """One candidate of a step."""

    step: int
    token: str
    parent: int | None
    """The index of the candidate that it continues."""
    log_prob: float
    score: float
    fate: Fate
    on_best: bool
    why: str
    """The explanation of its fate, in words."""


def search_figure(candidates: Sequence[Candidate], *, chosen: int | None = None, dark: bool = False) -> go.Figure:
    """Draws the tree, each candidate with its token and score; the best result's way in the accent colour, the chosen
    candidate larger. The first customdata of a point is its index."""
    colours = theme.palette(dark)
    places: list[tuple[int, int]] = []
    filled: Counter[int] = Counter()
    for candidate in candidates:
        places.append((candidate.step, filled[candidate.step]))
        filled[candidate.step] += 1
    traces = []
    for best, colour, width in ((False, colours.faint, 1.0), (True, colours.accent, 2.5)):
        pairs = [
            (places[candidate.parent], place)
            for place, candidate in zip(places, candidates, strict=True)
            if candidate.parent is not None and candidate.on_best == best
        ]
        traces.append(tree_lines(pairs, colour, width))
    labels = token_labels([candidate.token for candidate in candidates], dark)
    for fate, symbol in _SYMBOLS.items():
        kept = [i for i, candidate in enumerate(candidates) if candidate.fate == fate]
        if not kept:
            continue
        ink = colours.quiet if fate == "pruned" else colours.text
        paints = [colours.accent if candidates[i].on_best else ink for i in kept]
        edges = {"width": [4 if i == chosen else 1.5 for i in kept], "color": paints}
        sizes = [15 if i == chosen else 9 for i in kept]
        plain = {"marker": {"opacity": 1}}
        traces.append(
            tree_points(
                [places[i] for i in kept],
                [f"{labels[i]} {typeset(f'{candidates[i].score:.2f}')}" for i in kept],
                ink,
                name=fate,
                marker={"symbol": symbol, "size": sizes, "color": paints, "line": edges, "opacity": 1},
                customdata=[[i, _text(candidates[i])] for i in kept],
                hovertemplate="%{customdata[1]}<extra></extra>",
                selected=plain,
                unselected=plain,
            )
        )
    n_rows = max(filled.values())
    return tree_figure(
        traces,
        max(filled) + 1,
        rows=(n_rows - 0.3, -0.5),
        column=(label_width([candidate.token for candidate in candidates]) + _BESIDE) * _CHARACTER,
        height=round(90 + n_rows * _ROW),
        margin={"l": 4, "r": 4, "t": 52, "b": 34},
        legend={"y": 0, "yanchor": "top", "itemclick": False},
        dark=dark,
    )


def _text(candidate: Candidate) -> str:
    return (
        f"<b>{hover_label(candidate.token)}</b>, step {candidate.step}<br>log-probability {candidate.log_prob:.6g} nats"
        f"<br>score {candidate.score:.6g}<br>{hover_label(candidate.why)}"
    )
