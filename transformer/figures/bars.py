"""Horizontal bars, a row each, with a number behind each, and ticks that mark another state on them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.figures.axes import hover
from transformer.figures.theme import Palette

Values = Sequence[float] | Float[ndarray, " row"]


def bars(
    values: Values, texts: Sequence[str], colour: str | Sequence[str], *, numbers: Sequence[str] = (), **own: Any
) -> dict[str, Any]:
    """Returns the trace of a bar for each row, in one colour or one each; `texts` are said on hover.

    The `numbers` stand behind the bars.
    """
    written = {"text": numbers, "textposition": "outside", "cliponaxis": False} if numbers else {}
    return {
        "type": "bar", "orientation": "h", "x": values, "y": np.arange(len(values)), "marker": {"color": colour},
        "showlegend": False, **written, **hover(texts),
    } | own  # fmt: skip


def ticks(values: Values, texts: Sequence[str], colours: Palette, rows: Sequence[int] | None = None) -> dict[str, Any]:
    """Returns the trace of an upright tick in each row, or in the given `rows`; `texts` are said on hover."""
    return {
        "type": "scatter", "mode": "markers", "x": values, "y": np.arange(len(values)) if rows is None else rows,
        "marker": {"symbol": "line-ns-open", "size": 16, "line": {"width": 2}, "color": colours.text},
        "showlegend": False, **hover(texts),
    }  # fmt: skip
