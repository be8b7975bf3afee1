"""Masks as matrices: the cells that each forbids, and several combined. Queries are rows, keys are columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.attention.matrix import query_key_texts
from transformer.figures.axes import column_axis, monospace, note, panel, row_axis, token_labels
from transformer.figures.bars import bars
from transformer.figures.heatmap import cells, check_labels, struck
from transformer.figures.labels import hover_label, label_width
from transformer.model.kinds import KindName

_CHARACTER = 7.6
_GAP = 0.07
"""The room for the sign between two matrices, as a fraction of the figure's width."""
_LARGEST, _SMALLEST = 28.0, 6.0
"""Pixels of a cell."""
_WIDTH = 860
"""Pixels that a figure is made for: wide enough for three masks of 40 tokens; a narrower window scrolls."""
_LABEL = 9.0
"""Pixels between two labels at least, and of their letters where they are that close."""
_ROOMY = 14.0
"""Pixels of a cell whose label has letters of full size."""
_NAME = 72
"""Pixels of the name above a mask."""
_NAMED_ROW = 34
"""Pixels of a row with a name beside it."""


@dataclass(frozen=True)
class Part:
    """One mask with its name and its reason."""

    name: str
    mask: Bool[ndarray, "query key"]
    forbids: str
    """The reason why a cell is forbidden, for hovering."""
    title: str = ""
    """The text above it, where that says more than its name."""


def masks_figure(
    parts: Sequence[Part],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    missing: Sequence[Part] = (),
    kind: KindName,
    dark: bool = False,
) -> go.Figure:
    """Draws masks side by side with their conjunction last: a cell is open where all of them are. Closed cells are
    struck.

    One mask alone is its own conjunction and is drawn once. After them stand, in grey, the masks that the model lacks.
    In a narrow window, such as a phone's, cells and labels shrink; `layout.meta` tells `scrolling_figure` below which
    width labels do, and how much lower the figure then is.
    """
    for part in (*parts, *missing):
        check_labels(part.mask, queries, keys)
    combined = Part("combined", np.logical_and.reduce([part.mask for part in parts]), "forbidden by one of the masks")
    colours, colour = theme.palette(dark), theme.kind_colour(kind, dark)
    drawn = [*parts, *([combined] if len(parts) > 1 else []), *missing]
    width = (1 - _GAP * (len(drawn) - 1)) / len(drawn)
    side, top = 16 + label_width(queries) * _CHARACTER, 44 + label_width(keys) * _CHARACTER
    fitting = (_WIDTH - side) * width / max(len(keys), 1)
    cell, smallest = min(_LARGEST, max(_SMALLEST, fitting)), min(_LABEL, max(_SMALLEST, 0.65 * fitting))
    traces, axes, shapes, notes = [], {}, [], []
    for number, part in enumerate(drawn, start=1):
        end, left = panel(number), (number - 1) * (width + _GAP)
        is_missing = number > len(drawn) - len(missing)
        shade = colours.faint if is_missing else colour
        scale = ((0, colours.masked), (1, shade))
        notes_on_cells = np.where(part.mask, "may attend", part.forbids).tolist()
        texts = query_key_texts(queries, keys, notes_on_cells)
        traces.append(cells(part.mask.astype(float), texts, scale=scale, opacity=0.75, end=end))
        axes |= _axes(end, (left, left + width), queries, keys, smallest, alone=len(drawn) == 1, dark=dark)
        shapes += struck(~part.mask, dark, end=end)
        place = {
            "xref": f"x{end}",
            "yshift": top - 30,
            "font": {"size": 14, "color": colours.quiet if is_missing else colour},
        }
        notes.append(note(part.title or part.name, (len(keys) - 1) / 2, 1, "center", "bottom") | place)
        if number > 1 and not is_missing:
            sign = "=" if part is combined else "∧"
            middle = (len(queries) - 1) / 2
            notes.append(note(sign, left - _GAP / 2, middle, "center", "middle", size=24, yref="y"))
    across = len(keys) / width
    meta = {
        "smallest_width": round(side + 8 + max(smallest * across, _NAME / width)),
        "small_labels_below": round(side + 8 + _ROOMY * across),
        "squares": {"rows": len(queries), "columns": across, "beside": side + 8, "above": top + 12},
    }
    return theme.figure(
        traces,
        dark,
        **axes,
        shapes=shapes,
        annotations=notes,
        height=round(top + len(queries) * cell + 16),
        margin={"l": side, "r": 8, "t": top, "b": 12, "autoexpand": False},
        meta=meta,
    )


def batch_figure(
    rows: Sequence[Sequence[str]], real: Bool[ndarray, "sentence position"], dark: bool = False
) -> go.Figure:
    """Draws the sentences of a batch one below the other; the padding that makes them equally long is grey."""
    colours = theme.palette(dark)
    labels = [[hover_label(token) for token in row] for row in rows]
    texts = [[f"position {i}<br><b>{label}</b>" for i, label in enumerate(row)] for row in labels]
    trace = cells(
        real.astype(float),
        texts,
        scale=((0, colours.masked), (1, colours.surface)),
        numbers=labels,
        gap=(2, 3),
        textfont=monospace(12),
    )
    numbers = [str(row) for row in range(len(rows))]
    longest = max((label_width(row) for row in rows), default=1)
    return theme.figure(
        [trace],
        dark,
        xaxis={"showticklabels": False},
        yaxis=row_axis(numbers, ticklabelstandoff=5, tickfont={"color": colours.quiet}),
        height=len(rows) * 32 + 12,
        margin={"l": 24, "r": 8, "t": 4, "b": 4, "autoexpand": False},
        meta={"smallest_width": round(32 + real.shape[1] * max(34, longest * _CHARACTER + 8))},
    )


def leak_figure(
    names: Sequence[str], before: Sequence[float], after: Sequence[float], *, dark: bool = False
) -> go.Figure:
    """Draws shares of attention on what masks hide, with all masks (open) and as switched (filled)."""
    if not len(names) == len(before) == len(after):
        raise ValueError(f"{len(names)} names do not fit {len(before)} and {len(after)} shares")
    colours = theme.palette(dark)
    hollow = {"color": colours.background, "line": {"color": colours.quiet, "width": 1.5}}
    dots = [
        {
            "type": "scatter", "x": list(shares), "y": list(range(len(names))), "mode": "markers", "name": name,
            "marker": {"size": 11, **look}, "hovertemplate": f"{name}: %{{x:.4g}}<extra></extra>",
        }
        for name, shares, look in (("all masks on", before, hollow), ("as switched", after, {"color": colours.accent}))
    ]  # fmt: skip
    across = {"range": [-0.03, 1.03], "title": {"text": "mean share of a real query's attention"}, "nticks": 6}
    return _named_rows(dots, names, across, above=40, right=12, dark=dark)


def forcing_figure(names: Sequence[str], values: Sequence[float], *, dark: bool = False) -> go.Figure:
    """Draws the largest differences that a teacher-forced pass shows, as bars with their numbers."""
    if len(names) != len(values):
        raise ValueError(f"{len(names)} names do not fit {len(values)} values")
    texts, numbers = [f"{value:.9g}" for value in values], [f"{value:.3g}" for value in values]
    trace = bars(values, texts, theme.palette(dark).accent, numbers=numbers, width=0.5)
    title = {"text": "largest difference in probability or log-probability"}
    return _named_rows([trace], names, {"rangemode": "tozero", "title": title}, above=12, right=64, dark=dark)


def _axes(
    end: str,
    domain: tuple[float, float],
    queries: Sequence[str],
    keys: Sequence[str],
    cell: float,
    *,
    alone: bool,
    dark: bool,
) -> dict[str, dict[str, Any]]:
    """Returns the axes of one mask, with as many tokens as have room where cells are as small as they may become."""
    every = math.ceil(_LABEL / cell)
    size = 12 if every == 1 else max(9, min(12, cell * every * 0.85))
    shared = {"ticklabelstandoff": 5, "constrain": "domain", "tickfont": monospace(size)}
    columns = column_axis(token_labels(keys, dark), every=every, domain=domain, anchor=f"y{end}", side="top")
    rows = row_axis(token_labels(queries, dark), every=every, anchor=f"x{end}", showticklabels=not end)
    across = {"tickangle": -90, "constraintoward": "left" if alone else "center"}
    down = {"scaleanchor": f"x{end}", "constraintoward": "top"}
    return {f"xaxis{end}": columns | shared | across, f"yaxis{end}": rows | shared | down}


def _named_rows(
    traces: Sequence[dict[str, Any]],
    names: Sequence[str],
    across: dict[str, Any],
    *,
    above: int,
    right: int,
    dark: bool,
) -> go.Figure:
    """Draws a row for each name."""
    left = 20 + _CHARACTER * max(map(len, names), default=0)
    return theme.figure(
        traces,
        dark,
        xaxis=across,
        yaxis=row_axis(names),
        height=80 + above + _NAMED_ROW * len(names),
        margin={"l": left, "r": right, "t": above, "b": 52},
    )
