"""A matrix of attention on a canvas: every cell can be pointed at and clicked, at any length of the sentences.

A plotly heatmap reports no clicks, and the invisible markers that would are one element of the page for each cell.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from pages.shared.components.frontend import (
    NONE_UNSEEN,
    colours_of,
    declared,
    describe_tokens,
    packed,
    palette_colours,
    scale_colours,
)
from transformer.figures import theme
from transformer.figures.labels import readable
from transformer.model.kinds import KindName

_component = declared(
    "head_matrix",
    css=("tokens.css", "matrices.css", "head_matrix.css"),
    js=("tokens.js", "scales.js", "head_matrix.js"),
    reports=("picked", "forbidden"),
)


def head_matrix(
    values: Float[ndarray, "row column"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    kind: KindName,
    titles: tuple[str, str],
    quantity: str,
    top: float,
    label: str,
    names: tuple[str, str] = ("query", "key"),
    row_notes: Sequence[str] | None = None,
    column_notes: Sequence[str] | None = None,
    rows_unseen: Mapping[int, str] = NONE_UNSEEN,
    columns_unseen: Mapping[int, str] = NONE_UNSEEN,
    mask: Bool[ndarray, "row column"] | None = None,
    weak: Bool[ndarray, "row column"] | None = None,
    weak_label: str = "",
    forbidden: Bool[ndarray, "row column"] | None = None,
    forbids: bool = False,
    where: tuple[int, int] = (0, 0),
    targets: Int[ndarray, "row column 4"] | None = None,
    largest: Float[ndarray, "row column"] | None = None,
    unit: str = "",
    chosen: tuple[int, int] | None = None,
    off: bool = False,
    clickable: bool = True,
    key: str,
) -> None:
    """Draws the values, 0 to `top`, with exact float32 on hover, and their numbers where they fit.

    A click, or Enter on the cell that arrow keys moved to, puts (layer, head, query, key) into
    `st.session_state[key]["picked"]`: those of `targets`, or `where` with the cell's row and column. Cells whose `mask`
    is False are struck through; `weak` ones are not drawn, which the legend says with `weak_label`; `forbidden` ones
    are those that a switch closed. If it `forbids`, a click puts the same numbers into "forbidden". `largest` holds
    what each value could be at most, in `unit`. `chosen` frames a cell; a head that is `off` is grey.
    """
    if values.shape != (len(rows), len(columns)):
        raise ValueError(f"values of shape {values.shape} do not fit {len(rows)} rows and {len(columns)} columns")
    _component(
        key=key,
        data={
            "shape": list(values.shape),
            "values": packed(values.astype(np.float32)),
            "state": _state(mask, weak, forbidden),
            "forbids": forbids,
            "targets": None if targets is None else packed(targets.astype(np.int16)),
            "largest": None if largest is None else packed(largest.astype(np.float32)),
            "unit": unit,
            "rows": _tokens(rows, rows_unseen),
            "columns": _tokens(columns, columns_unseen),
            "row_notes": _notes("row", rows, row_notes),
            "column_notes": _notes("column", columns, column_notes),
            "titles": list(titles),
            "names": list(names),
            "quantity": quantity,
            "weak_label": weak_label,
            "top": float(top),
            "top_label": f"{top:.3g}",
            "where": list(where),
            "chosen": None if chosen is None else list(chosen),
            "off": off,
            "unclickable": not clickable,
            "label": label,
            "colours": colours_of(kind),
            "scales": scale_colours(theme.greys if off else theme.sequential),
            "masked": palette_colours("masked"),
            "inks": list(theme.INKS),
            "quiet": palette_colours("quiet"),
        },
    )


def _state(mask: ndarray | None, weak: ndarray | None, forbidden: ndarray | None) -> str | None:
    """Returns a byte for each cell: 0 drawn, 1 masked, 2 too weak, 3 forbidden by a switch; None if all are drawn."""
    given = [array for array in (mask, weak, forbidden) if array is not None]
    if not given:
        return None
    state = np.zeros(given[0].shape, np.uint8)
    for array, code in ((weak, 2), (None if mask is None else ~mask, 1), (forbidden, 3)):
        if array is not None:
            state[array] = code
    return packed(state) if state.any() else None


def _tokens(tokens: Sequence[str], unseen: Mapping[int, str]) -> list[dict[str, Any]]:
    described = describe_tokens(tokens, unseen=unseen)
    for index, (found, token) in enumerate(zip(described, tokens, strict=True)):
        found["full"] = readable(unseen.get(index, token))
    return described


def _notes(name: str, tokens: Collection[str], notes: Sequence[str] | None) -> list[str]:
    return [f"{name} {index}" for index in range(len(tokens))] if notes is None else list(notes)
