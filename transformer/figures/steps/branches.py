"""Outputs that begin alike as one tree that grows to the right; two of them side by side; the parts of any tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import column_axis, hover, monospace, token_labels
from transformer.figures.labels import hover_label, label_width

_ROW, _CHARACTER = 36, 7.4
"""Pixels of a branch's height, and of a character of its label."""


@dataclass(frozen=True)
class TreeToken:
    """One token of the tree."""

    step: int
    token: str
    row: int
    parent: int | None
    note: str
    """The text under the token: its probability, or how often it was drawn."""
    weight: float
    """The thickness of the line to it, 0..1."""
    marked: bool
    hover: str


def branches_figure(nodes: Sequence[TreeToken], *, dark: bool = False) -> go.Figure:
    """Draws the tree: a column a step, a row an output; what outputs share is drawn once."""
    colours = theme.palette(dark)
    traces = []
    for node in nodes:
        if node.parent is not None:
            above = nodes[node.parent]
            colour = colours.accent if node.marked else colours.faint
            traces.append(tree_lines([((above.step, above.row), (node.step, node.row))], colour, 1 + 5 * node.weight))
    inks = [colours.accent if node.marked else colours.text for node in nodes]
    labels = token_labels([node.token for node in nodes], dark)
    texts = [f"<b>{hover_label(node.token)}</b>, step {node.step}<br>{hover_label(node.hover)}" for node in nodes]
    traces.append(
        tree_points(
            [(node.step, node.row) for node in nodes],
            [f"{label}<br>{node.note}" for label, node in zip(labels, nodes, strict=True)],
            inks,
            marker={"size": 7, "color": inks},
            showlegend=False,
            **hover(texts),
        )
    )
    n_steps, n_rows = max(node.step for node in nodes) + 1, max(node.row for node in nodes) + 1
    column = max(label_width([node.token for node in nodes]), *(len(node.note) for node in nodes)) * _CHARACTER + 24
    return tree_figure(
        traces,
        n_steps,
        rows=(n_rows - 0.1, -0.4),
        column=column,
        height=round(62 + n_rows * (_ROW + 8)),
        margin={"l": 4, "r": 4, "t": 48, "b": 6},
        dark=dark,
    )


def tree_figure(
    traces: Sequence[dict[str, Any]],
    n_steps: int,
    *,
    rows: tuple[float, float],
    column: float,
    dark: bool,
    **layout: Any,
) -> go.Figure:
    """Draws the lines and points of a tree over its steps; a `column` is what a step needs in pixels."""
    return theme.figure(
        traces,
        dark,
        xaxis={
            "range": [-0.6, n_steps - 0.4],
            "tickvals": list(range(n_steps)),
            "side": "top",
            "title": {"text": "step", "standoff": 4},
            "fixedrange": True,
        },
        yaxis={"range": rows, "showticklabels": False, "fixedrange": True},
        dragmode=False,
        meta={"smallest_width": round(n_steps * column)},
        **layout,
    )


def tree_points(
    places: Sequence[tuple[int, int]], labels: Sequence[str], ink: str | Sequence[str], **own: Any
) -> dict[str, Any]:
    """Returns the points at these steps and rows, each with its label under it."""
    return {
        "type": "scatter", "mode": "markers+text", "x": [step for step, _ in places], "y": [row for _, row in places],
        "text": labels, "textposition": "bottom center", "textfont": monospace(11, color=ink),
    } | own  # fmt: skip


def tree_lines(
    pairs: Sequence[tuple[tuple[float, float], tuple[float, float]]], colour: str, width: float
) -> dict[str, Any]:
    """Returns a line between the two places of each pair: along the row, down halfway, along; rows go down side by
    side."""
    x: list[float | None] = []
    y: list[float | None] = []
    for (x0, y0), (x1, y1) in pairs:
        bend = (x0 + x1) / 2 + 0.02 * (y0 % 8 - 3.5)
        x += [x0, x1, None] if y0 == y1 else [x0, bend, bend, x1, None]
        y += [y0, y1, None] if y0 == y1 else [y0, y0, y1, y1, None]
    line = {"color": colour, "width": width}
    return {"type": "scatter", "x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}


def two_branches_figure(
    names: Sequence[str],
    tokens: Sequence[Sequence[str]],
    probabilities: Sequence[Float[ndarray, " _"]],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws two outputs step by step: how probable each token was where it was written."""
    longest = max(map(len, tokens))
    bars = []
    for index, (name, words, row) in enumerate(zip(names, tokens, probabilities, strict=True)):
        said = [f"{hover_label(name)}: {float(p):.6g}" for p in row]
        texts = [f"<b>{hover_label(token)}</b><br>{text}" for token, text in zip(words, said, strict=True)]
        paint = {"name": hover_label(name), "marker": {"color": theme.run_colour(index, dark)}}
        bars.append({"type": "bar", "x": list(range(len(words))), "y": row, **paint, **hover(texts)})
    first, second = (token_labels([*line, *(" " for _ in range(longest - len(line)))], dark) for line in tokens)
    labels = [a if a == b else f"{a}<br>{b}" for a, b in zip(first, second, strict=True)]
    width = max(map(label_width, tokens)) * _CHARACTER
    across = {"range": [-0.6, longest - 0.4], "tickangle": 0, "tickfont": monospace(12), "fixedrange": True}
    return theme.figure(
        bars,
        dark,
        xaxis=column_axis(labels, **across),
        yaxis={"title": {"text": "probability"}, "range": [0, 1.02], "showgrid": True, "fixedrange": True},
        height=300,  # the second row of labels stays clear of the scroll bar
        margin={"l": 60, "r": 8, "t": 34, "b": 72},
        bargap=0.35,
        dragmode=False,
        meta={"smallest_width": round(70 + longest * (width + 12))},
    )
