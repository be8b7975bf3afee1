"""Outputs that begin alike as one tree that grows to the right; two of them side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label, label_width
from transformer.figures.training.curves import RUN_COLOURS, RUN_COLOURS_DARK

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
    """Stands under the token: its probability, or how often it was drawn."""
    weight: float
    """Thickness of the line to it, 0..1."""
    marked: bool
    hover: str


def branches_figure(nodes: Sequence[TreeToken], *, dark: bool = False) -> go.Figure:
    """Draws the tree: a column a step, a row an output; what outputs share is drawn once."""
    colours = theme.palette(dark)
    lines = []
    for node in nodes:
        if node.parent is not None:
            above = nodes[node.parent]
            x, y = elbow((above.step, above.row), (node.step, node.row))
            paint = {"color": colours.accent if node.marked else colours.faint, "width": 1 + 5 * node.weight}
            lines.append(
                {"type": "scatter", "x": x, "y": y, "mode": "lines", "hoverinfo": "skip", "showlegend": False}
                | {"line": paint}
            )
    labels = axis_labels([node.token for node in nodes], quiet=colours.quiet, faint=colours.faint)
    inks = [colours.accent if node.marked else colours.text for node in nodes]
    points = {
        "type": "scatter", "mode": "markers+text",
        "x": [node.step for node in nodes], "y": [node.row for node in nodes],
        "marker": {"size": 7, "color": inks},
        "text": [f"{label}<br>{t.note}" for label, t in zip(labels, nodes, strict=True)],
        "textposition": "bottom center", "textfont": {"size": 11, "family": theme.MONOSPACE, "color": inks},
        "customdata": [f"<b>{hover_label(t.token)}</b>, step {t.step}<br>{hover_label(t.hover)}" for t in nodes],
        "hovertemplate": "%{customdata}<extra></extra>", "showlegend": False,
    }  # fmt: skip
    n_steps, n_rows = max(node.step for node in nodes) + 1, max(node.row for node in nodes) + 1
    column = max(label_width([node.token for node in nodes]), *(len(node.note) for node in nodes)) * _CHARACTER + 24
    bare = {"showgrid": False, "showline": False, "ticks": "", "fixedrange": True}
    steps = {"range": [-0.6, n_steps - 0.4], "tickvals": list(range(n_steps)), "side": "top"}
    layout = {
        "xaxis": bare | steps | {"title": {"text": "step", "standoff": 4}},
        "yaxis": bare | {"range": [n_rows - 0.1, -0.4], "showticklabels": False},
        "height": round(62 + n_rows * (_ROW + 8)),
        "margin": {"l": 4, "r": 4, "t": 48, "b": 6},
        "dragmode": False,
        "meta": {"smallest_width": round(n_steps * column)},
    }
    return theme.apply(go.Figure(data=[*lines, points], layout=layout), dark)


def elbow(start: tuple[float, float], end: tuple[float, float]) -> tuple[list[float], list[float]]:
    """Returns a line between two columns of labels: along the row, down halfway, along; rows go down side by side."""
    if start[1] == end[1]:
        return [start[0], end[0]], [start[1], end[1]]
    bend = (start[0] + end[0]) / 2 + 0.02 * (start[1] % 8 - 3.5)
    return [start[0], bend, bend, end[0]], [start[1], start[1], end[1], end[1]]


def two_branches_figure(
    names: Sequence[str],
    tokens: Sequence[Sequence[str]],
    probabilities: Sequence[Float[ndarray, "_"]],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws two outputs step by step: how probable each token was where it was written."""
    colours, paints = theme.palette(dark), RUN_COLOURS_DARK if dark else RUN_COLOURS
    fig = theme.apply(go.Figure(), dark)
    longest = max(map(len, tokens))
    for name, words, row, paint in zip(names, tokens, probabilities, paints, strict=False):
        fig.add_bar(
            x=list(range(len(words))), y=row, name=hover_label(name), marker={"color": paint},
            customdata=[
                f"<b>{hover_label(token)}</b><br>{hover_label(name)}: {float(p):.6g}"
                for token, p in zip(words, row, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    first, second = (
        axis_labels([*line, *[" "] * (longest - len(line))], quiet=colours.quiet, faint=colours.faint)
        for line in tokens
    )
    width = max(map(label_width, tokens)) * _CHARACTER
    fig.update_xaxes(
        tickvals=list(range(longest)),
        ticktext=[a if a == b else f"{a}<br>{b}" for a, b in zip(first, second, strict=True)],
        tickfont={"family": theme.MONOSPACE, "size": 12}, range=[-0.6, longest - 0.4], fixedrange=True, tickangle=0,
    )  # fmt: skip
    fig.update_yaxes(
        title="probability", range=[0, 1.02], fixedrange=True, showgrid=True, gridcolor=colours.line, showline=False
    )
    return fig.update_layout(
        height=300,  # the second row of labels stays clear of the scroll bar
        margin={"l": 60, "r": 8, "t": 34, "b": 72},
        bargap=0.35,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 13}},
        dragmode=False,
        meta={"smallest_width": round(70 + longest * (width + 12))},
    )
