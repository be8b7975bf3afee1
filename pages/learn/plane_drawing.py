"""Draws attention in a plane whose points can be dragged, or moved with the arrow keys."""

import numpy as np

from pages.learn.choices import set_control
from pages.learn.lessons.query_key_value import POINTS, read_points
from pages.shared.components.frontend import declared, palette_colours, reported, run_colours
from transformer.figures.attention.plane import REACH
from transformer.views.attention.plane import PlaneData, names_of

_KEY = "lesson-plane"
_component = declared("plane", css=("plane.css",), js=("plane.js",))


def draw_plane(data: PlaneData, *, scaled: bool, hull: bool, locked: bool) -> None:
    """Draws the planes. While a point moves, the browser computes; once it rests, the server does, as everywhere."""
    names = names_of(len(data.keys))
    news = {
        "query": data.query.tolist(),
        "keys": data.keys.tolist(),
        "values": data.values.tolist(),
        "weights": data.weights.tolist(),
        "names": names,
        "colours": [run_colours(i + 1) for i in range(len(names))],
        "ink": palette_colours("text"),
        "divisor": float(np.sqrt(data.keys.shape[1])) if scaled else 1.0,
        "reach": REACH,
        "hull": hull,
        "locked": locked,
    }
    _component(key=_KEY, on_points_change=_take, data=news)


def _take() -> None:
    said = reported(_KEY).get("points")
    if isinstance(said, str) and read_points(said) is not None:
        set_control(POINTS, said)
