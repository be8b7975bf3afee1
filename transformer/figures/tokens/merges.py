"""The merges of BPE as a stack: characters below, and above them each piece that two others became."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.axes import hover, monospace
from transformer.figures.labels import axis_labels, hover_label

_PER_CHARACTER, _PER_LEVEL, _EDGES = 20, 30, 24
"""Pixels."""
_GAP = 0.08


@dataclass(frozen=True)
class Block:
    """A piece of the text."""

    text: str
    start: int
    """Its first character."""
    step: int
    """The step that makes it; 0 for a character."""
    says: str
    """What hovering says."""


def merges_figure(blocks: Sequence[Block], step: int, *, dark: bool = False) -> go.Figure:
    """Draws a bar for each piece, in the order in which they are made; those after this step are empty.

    The pieces of this moment, those that no other covers, stand out.
    """
    colours, accent = theme.palette(dark), theme.palette(dark).accent
    length = max((block.start + len(block.text) for block in blocks), default=0)
    heights, on_top = np.zeros(length, dtype=int), np.full(length, -1)
    levels = []
    for number, block in enumerate(blocks):
        covered = slice(block.start, block.start + len(block.text))
        levels.append(int(heights[covered].max()))
        heights[covered] = levels[-1] + 1
        if block.step <= step:
            on_top[covered] = number
    current, made = set(on_top.tolist()), [block.step <= step for block in blocks]
    fills = [accent if n in current else colours.line if made[n] else colours.background for n in range(len(blocks))]
    inks = [
        colours.background if n in current else colours.text if made[n] else colours.faint for n in range(len(blocks))
    ]
    widths = np.array([len(block.text) for block in blocks], dtype=float)
    bars = {
        "type": "bar", "x": np.array([block.start for block in blocks]) + widths / 2, "width": widths - _GAP,
        "base": levels, "y": np.full(len(blocks), 1 - _GAP), "showlegend": False, "textangle": 0,
        "marker": {"color": fills, "line": {"color": colours.line, "width": 1}},
        "text": axis_labels([block.text for block in blocks], quiet="", faint=""), "textposition": "inside",
        "insidetextanchor": "middle", "textfont": monospace(13, color=inks), "constraintext": "both",
        **hover([hover_label(block.says) for block in blocks]),
    }  # fmt: skip
    top = max(levels, default=0) + 1
    hidden = {"showticklabels": False, "showgrid": False, "zeroline": False}
    return theme.figure(
        [bars],
        dark,
        height=_PER_LEVEL * top + _EDGES,
        barmode="overlay",
        xaxis=hidden | {"range": [0, length]},
        yaxis=hidden | {"range": [0, top]},
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        meta={"smallest_width": _PER_CHARACTER * length + 16},
    )
