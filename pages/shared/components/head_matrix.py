"""A matrix of attention on a canvas: every cell can be pointed at and clicked, at any length of the sentences.

A plotly heatmap reports no clicks, and the invisible markers that would are one element of the page for each cell.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pages.shared.components.frontend import (
    Live,
    colours_of,
    declared,
    describe_tokens,
    drawn,
    packed,
    palette_colours,
    scale_colours,
)
from transformer.analysis.attention.aggregation import below
from transformer.figures import theme
from transformer.figures.labels import readable
from transformer.views.attention.matrix_data import DrawnMatrix, MatrixData, Side

_component = declared(
    "head_matrix",
    css=("tokens.css", "matrices.css", "head_matrix.css"),
    js=("live.js", "tokens.js", "scales.js", "head_matrix.js"),
    reports=("picked", "forbidden"),
)


def head_matrix(view: DrawnMatrix, data: MatrixData, *, label: str, forbids: bool = False, key: str) -> None:
    """Draws the values, 0 to the view's `top`, with exact float32 on hover, and their numbers where they fit.

    A click, or Enter on the cell that arrow keys moved to, puts the cell's (layer, head, query, key) in `data.entries`
    into `st.session_state[key]["picked"]`; if it `forbids`, into "forbidden". Masked cells are struck through, and
    values below the view's `least` are not drawn, which the legend says. A head that is off is grey.
    """
    draw_matrix(described_matrix(view, data, label=label, forbids=forbids), key=key)


def draw_matrix(described: Mapping[str, Any] | None, *, live: Live | None = None, key: str) -> None:
    """Draws what `described_matrix` returns, or nothing before the stream of a run at work has sent something.

    What the stream sends fades into each other.
    """
    _component(key=key, data=drawn(described, live))


def described_matrix(
    view: DrawnMatrix, data: MatrixData, *, label: str, title: str = "", forbids: bool = False, steady: bool = False
) -> dict[str, Any]:
    """Returns a matrix as the script draws it, below a title of its own if there is one.

    A `steady` one keeps its cells where they are when rows come, go or change their names, as an output does while its
    model learns: it has room for names as long as the columns' and, if it is to be square, for as many rows.
    """
    values, rows, columns, off = data.values, data.rows, data.columns, data.off
    top, least, chosen = view.top(data), view.least(data), view.chosen(data)
    if values.shape != (len(rows.labels), len(columns.labels)):
        raise ValueError(
            f"values of shape {values.shape} do not fit {len(rows.labels)} rows and {len(columns.labels)} columns"
        )
    return {
        "shape": list(values.shape),
        "values": packed(values.astype(np.float32)),
        "state": _state(data, least),
        "forbids": forbids,
        "targets": None if data.entries is None else packed(data.entries.astype(np.int16)),
        "largest": None if data.largest is None else packed(data.largest.astype(np.float32)),
        "unit": view.unit,
        "rows": _tokens(rows),
        "columns": _tokens(columns),
        "row_notes": rows.notes("row"),
        "column_notes": columns.notes("column") if view.columns_are_tokens else [""] * len(columns.labels),
        "titles": list(view.axes[view.kind]),
        "names": list(view.names),
        "quantity": view.quantity,
        "weak_label": f"below {least:.3g}" if least else "",
        "top": float(top),
        "top_label": f"{top:.3g}",
        "chosen": None if chosen is None else list(chosen),
        "off": off,
        "unclickable": data.entries is None,
        "label": label,
        "title": title,
        "steady": steady,
        "colours": colours_of(view.kind),
        "scales": scale_colours(theme.greys if off else theme.sequential),
        "masked": palette_colours("masked"),
        "inks": list(theme.INKS),
        "quiet": palette_colours("quiet"),
    }


def _state(data: MatrixData, least: float) -> str | None:
    """Returns a byte for each cell: 0 drawn, 1 masked, 2 too weak, 3 forbidden by a switch; None if all are drawn."""
    state = np.zeros(data.values.shape, np.uint8)
    if least:
        state[below(data.values, least)[0]] = 2
    if data.mask is not None:
        state[~data.mask] = 1
    if data.forbidden is not None:
        state[data.forbidden] = 3
    return packed(state) if state.any() else None


def _tokens(side: Side) -> list[dict[str, Any]]:
    described = describe_tokens(side.labels, unseen=side.unseen)
    for index, (found, token) in enumerate(zip(described, side.labels, strict=True)):
        found["full"] = readable(side.unseen.get(index, token))
    return described
