"""Lines, the bands of their intervals, and points with texts."""

from typing import Any

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray

from transformer.figures.axes import hover
from transformer.figures.labels import hover_label


def line(
    x: Any, y: Any, colour: str, *, name: str | None = None, width: float = 2, dash: str = "solid", **own: Any
) -> dict[str, Any]:
    """Returns the trace of a line; one with marks at its points has the mode "lines+markers"."""
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name and hover_label(name),
        "line": {"color": colour, "width": width, "dash": dash}, "marker": {"color": colour, "size": 5},
    } | own  # fmt: skip


def points(x: Any, y: Any, texts: Any = None, *, mode: str = "markers", **own: Any) -> dict[str, Any]:
    """Returns the trace of marks, or of words (mode "text"), at these places; `texts` are said on hover, if given."""
    said = {"hoverinfo": "skip"} if texts is None else hover(texts)
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "showlegend": False, **said} | own


def band(
    x: Shaped[ndarray, " point"], low: Float[ndarray, " point"], high: Float[ndarray, " point"], colour: str, **own: Any
) -> dict[str, Any]:
    """Returns the trace of a pale band between two lines, which says nothing on hover."""
    return {
        "type": "scatter", "mode": "none", "x": np.concatenate((x, x[::-1])), "y": np.concatenate((high, low[::-1])),
        "fill": "toself", "fillcolor": colour, "opacity": 0.15, "showlegend": False, "hoverinfo": "skip",
    } | own  # fmt: skip
