"""Small matrices in a row, to look at or to choose one from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pages.shared.components.frontend import (
    colours_of,
    declared,
    packed,
    reported,
    scale_colours,
)
from transformer.figures import theme
from transformer.model.kinds import KindName

_component = declared(
    "small_matrices",
    css=("small_matrices.css",),
    js=("tokens.js", "scales.js", "small_matrices.js"),
    reports=("picked",),
)


@dataclass(frozen=True)
class SmallMatrix:
    """A picture: weights from 0 to 1, and the words below it."""

    name: str
    label: str
    weights: Float[ndarray, "row column"]


def small_matrices(
    pictures: Sequence[SmallMatrix],
    *,
    label: str,
    kind: KindName,
    chosen: str = "",
    take: Callable[[str], None] | None = None,
    key: str,
) -> None:
    """Draws the pictures; `take` makes them a choice of one, and is called with its name before the page runs again."""

    def taken() -> None:
        name = reported(key).get("picked")
        if take is not None and name in {picture.name for picture in pictures}:
            take(name)

    described = [
        {
            "name": picture.name,
            "label": picture.label,
            "shape": list(picture.weights.shape),
            "weights": packed(np.round(np.clip(picture.weights, 0, 1) * 255).astype(np.uint8)),
        }
        for picture in pictures
    ]
    _component(
        key=key,
        on_picked_change=taken,
        data={
            "pictures": described,
            "label": label,
            "chosen": chosen,
            "choosable": take is not None,
            "colours": colours_of(kind),
            "scales": scale_colours(theme.sequential),
        },
    )
