"""All layers and heads as small pictures, one of which can be chosen."""

from collections.abc import Collection

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pages.shared.components.frontend import (
    colours_of,
    declared,
    packed,
    palette_colours,
    picked_head,
    pooled,
    reported,
    scale_colours,
)
from transformer.figures import theme
from transformer.model.kinds import AttentionKind, KindName

SIDE = 64
"""The most pixels of a side."""

_component = declared(
    "head_grid", css=("head_grid.css",), js=("tokens.js", "scales.js", "head_grid.js"), reports=("picked",)
)


def head_grid(
    weights: Float[ndarray, "layer head query key"],
    *,
    kind: KindName,
    selected: tuple[int, int],
    off: Collection[tuple[int, int]] = (),
    at_mean: Collection[tuple[int, int]] = (),
    mask: Bool[ndarray, "layer query key"] | None = None,
    relative: bool = False,
    key: str,
) -> tuple[int, int] | None:
    """Draws a thumbnail for each head, rows being layers; returns the head just picked by click or Enter, or None.

    With more than SIDE rows or columns a pixel is the largest weight of a patch. `off` heads are struck out, and so are
    those `at_mean`. `relative` shades each head up to its own largest weight instead of 1.
    """
    n_layers, n_heads = weights.shape[:2]
    picked = picked_head(reported(key).get("picked"), n_layers, n_heads)
    layer, head = picked or selected
    seen = weights if mask is None else np.where(mask[:, None], weights, 0)
    levels = pooled(_levels(seen, relative), SIDE)
    _component(
        key=key,
        data={
            "shape": list(levels.shape),
            "aspect": weights.shape[3] / weights.shape[2],
            "weights": packed(levels),
            "mask": None if mask is None or mask.all() else packed(pooled(mask, SIDE).astype(np.uint8)),
            "selected": [int(layer), int(head)],
            "off": sorted([int(a), int(b)] for a, b in off),
            "at_mean": sorted([int(a), int(b)] for a, b in at_mean),
            "colours": colours_of(kind),
            "scales": scale_colours(theme.sequential),
            "masked": palette_colours("masked"),
            "label": AttentionKind(kind).label,
        },
    )
    return picked


def _levels(weights: Float[ndarray, "layer head query key"], relative: bool) -> ndarray:
    if relative:
        largest = weights.max(axis=(2, 3), keepdims=True)
        weights = weights / np.where(largest > 0, largest, 1)
    return np.round(np.clip(weights, 0, 1) * 255).astype(np.uint8)
