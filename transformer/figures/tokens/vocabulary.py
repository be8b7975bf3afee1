"""Vocabulary size against the length of sentences, and against the words that can be read: two panels."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import on_axes
from transformer.figures.lines import line

_TITLES = ("tokens in a sentence, mean", "words covered, %")
_ROUND = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_TICKS = {"tickvals": _ROUND, "ticktext": [f"{size:,}" for size in _ROUND]}
_DASHES = ("dot", "solid", "solid", "dash")


@dataclass(frozen=True)
class Line:
    """A kind of tokenizer at several sizes."""

    name: str
    sizes: Int[ndarray, " size"]
    length: Float[ndarray, " size"]
    covered: Float[ndarray, " size"]


def vocabulary_figure(lines: Sequence[Line], *, dark: bool = False) -> go.Figure:
    """Draws each kind in one colour in both panels."""
    traces = []
    for place, each in enumerate(lines):
        for number, (end, values, unit) in enumerate((("", each.length, "tokens"), ("2", 100 * each.covered, "%"))):
            says = f"{each.name}, vocabulary %{{x:,}}: %{{y:.4g}} {unit}<extra></extra>"
            look = {"name": each.name, "legendgroup": each.name, "showlegend": number == 0, "mode": "lines+markers"}
            drawn = line(each.sizes, values, theme.run_colour(place, dark), dash=_DASHES[place % 4], hovertemplate=says)
            traces.append(drawn | look | on_axes(end))
    across = {"type": "log", **_TICKS, "showgrid": True, "title": {"text": "vocabulary"}, "automargin": True}
    down = {"showgrid": True, "automargin": True}
    return theme.figure(
        traces,
        dark,
        height=380,
        xaxis=across | {"domain": [0, 0.44]},
        xaxis2=across | {"domain": [0.56, 1], "anchor": "y2"},
        yaxis=down | {"title": {"text": _TITLES[0]}, "rangemode": "tozero"},
        yaxis2=down | {"title": {"text": _TITLES[1]}, "range": [0, 103], "anchor": "x2"},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        showlegend=True,
        hovermode="closest",
        meta={"smallest_width": 640},
    )
