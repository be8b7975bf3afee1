"""One entry of attention: the product of q and k, number by number, and the parts of a sublayer's output."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import row_axis
from transformer.figures.bars import bars
from transformer.figures.heatmap import cells, numbers_on
from transformer.figures.labels import exact, typeset
from transformer.model.kinds import KindName

_NUMBERED = 16
"""The most dimensions at which numbers stand in the cells."""
_ROW_HEIGHT = 34


def products_figure(
    q: Float[ndarray, " d_head"],
    k: Float[ndarray, " d_head"],
    terms: Float[ndarray, " d_head"],
    *,
    score: str = "q · k",
    term: str = "q<sub>i</sub> k<sub>i</sub>",
    kind: KindName,
    dark: bool = False,
) -> go.Figure:
    """Draws q, k and the term of their score for each dimension of the head: three rows, coloured around 0.

    Hovering is exact. `score` and `term` are how the score and one of its terms are written.
    """
    scale = theme.diverging(dark)
    vectors = _reach(q, k)
    numbered = len(q) <= _NUMBERED
    traces = []
    for row, (what, values, reach) in enumerate((("q", q, vectors), ("k", k, vectors), (score, terms, _reach(terms)))):
        limits = -reach, reach
        digits = [exact(value) if row < 2 else f"{value:.9g}" for value in values]
        texts = [[f"dimension {i}<br>{what} = {text}" for i, text in enumerate(digits)]]
        numbers = numbers_on(values[None], scale, limits) if numbered else None
        place = {"x": np.arange(len(values)), "y": [row]}
        traces.append(cells(values[None], texts, scale=scale, limits=limits, numbers=numbers, gap=(1, 2), **place))
    title = {"text": "dimension of the head", "font": {"color": theme.kind_colour(kind, dark)}}
    small = {"color": theme.palette(dark).quiet, "size": 12}
    return theme.figure(
        traces,
        dark,
        xaxis={"title": title, "tickfont": small, "nticks": 17},
        yaxis=row_axis(["q", "k", term]),
        height=3 * _ROW_HEIGHT + 52,
        margin={"l": 44, "r": 8, "t": 6, "b": 46, "autoexpand": False},
        meta={"smallest_width": 60 + 34 * len(q) if numbered else 360},
    )


def shares_figure(names: Sequence[str], shares: Sequence[float], *, kind: KindName, dark: bool = False) -> go.Figure:
    """Draws the terms of a sublayer's output, the entry first, as bars around 0 whose lengths sum to 1."""
    if len(names) != len(shares):
        raise ValueError(f"{len(shares)} shares need as many names, not {len(names)}")
    colours = theme.palette(dark)
    texts = [f"{name}: {share:.9g}" for name, share in zip(names, shares, strict=True)]
    paints = [theme.kind_colour(kind, dark), *(colours.quiet for _ in names[1:])]
    numbers = [typeset(f"{share:+.3f}") for share in shares]
    ink = {"color": colours.text, "size": 13}
    trace = bars(list(shares), texts, paints, numbers=numbers, width=0.55, textfont=ink)
    low, high = min(0.0, *shares), max(0.0, *shares)
    room = 0.18 * ((high - low) or 1.0)
    across = {
        "showticklabels": False,
        "range": [low - room if low < 0 else low, high + room],
        "zeroline": True,
        "zerolinecolor": colours.line,
        "title": {"text": "share of the sublayer's output (they sum to 1)"},
    }
    return theme.figure(
        [trace],
        dark,
        xaxis=across,
        yaxis=row_axis(names, automargin=True),
        height=round(len(names) * 28 + 44),
        margin={"l": 8, "r": 8, "t": 4, "b": 36},
        meta={"smallest_width": 380},
    )


def _reach(*values: Float[ndarray, " d_head"]) -> float:
    """Returns the largest magnitude; 1 where all are 0."""
    return max(float(np.abs(array).max(initial=0)) for array in values) or 1.0
