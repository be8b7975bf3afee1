"""The ways of drawing the views of lessons that are dragged rather than looked at."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pages.learn.lesson import Part
from pages.learn.plane_drawing import draw_plane
from transformer.views.attention.plane import AttentionInPlane


def draws(part: Part, *, locked: bool) -> Callable[[Any], object] | None:
    """Returns what draws a part in place of its view's figure; None where that figure is drawn."""
    if isinstance(part.view, AttentionInPlane):
        return partial(draw_plane, scaled=part.view.scaled, hull=part.view.hull, locked=locked)
    return None
