"""All layers and heads as small pictures, one of which can be chosen."""

from collections.abc import Collection

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float
from numpy import ndarray
from streamlit.components.v2 import component

from pages.shared.components.frontend import colours_of, packed, text_of
from pages.shared.components.packed_arrays import pooled
from transformer.figures import theme
from transformer.model.kinds import AttentionKind, KindName

SIDE = 64
"""Most pixels of a side."""

_component = component(
    "attention_lab_head_grid",
    html="<div class='root'></div>\n",
    css=text_of("head_grid.css"),
    js=text_of("tokens.js", "scales.js", "head_grid.js"),
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
    """Draws a thumbnail for each head, rows being layers; the head just picked by click or Enter, once, else None.

    Of more than SIDE rows or columns a pixel is the largest weight of a patch. `off` heads are struck out, and so are
    those `at_mean`. `relative` shades each head up to its own largest weight instead of 1.
    """
    n_layers, n_heads = weights.shape[:2]
    picked = _picked(st.session_state.get(key), n_layers, n_heads)
    layer, head = picked or selected
    seen = weights if mask is None else np.where(mask[:, None], weights, 0)
    levels = pooled(_levels(seen, relative), SIDE)
    _component(
        key=key,
        on_picked_change=lambda: None,
        data={
            "shape": list(levels.shape),
            "aspect": weights.shape[3] / weights.shape[2],
            "weights": packed(levels),
            "mask": None if mask is None or mask.all() else packed(pooled(mask, SIDE).astype(np.uint8)),
            "selected": [int(layer), int(head)],
            "off": sorted([int(a), int(b)] for a, b in off),
            "at_mean": sorted([int(a), int(b)] for a, b in at_mean),
            "colours": colours_of(kind),
            "scales": {
                "light": [colour for _, colour in theme.sequential()],
                "dark": [colour for _, colour in theme.sequential(dark=True)],
            },
            "masked": {"light": theme.LIGHT.masked, "dark": theme.DARK.masked},
            "label": AttentionKind(kind).label,
        },
    )
    return picked


def _picked(state: object, n_layers: int, n_heads: int) -> tuple[int, int] | None:
    """The pick that came with this rerun. None if it does not fit the model at hand (the picker may have changed)."""
    value = state.get("picked") if isinstance(state, dict) else None
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(index, int) for index in value)):
        return None
    layer, head = value
    return (layer, head) if 0 <= layer < n_layers and 0 <= head < n_heads else None


def _levels(weights: Float[ndarray, "layer head query key"], relative: bool) -> ndarray:
    if relative:
        largest = weights.max(axis=(2, 3), keepdims=True)
        weights = weights / np.where(largest > 0, largest, 1)
    return np.round(np.clip(weights, 0, 1) * 255).astype(np.uint8)
