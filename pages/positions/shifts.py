"""Shows a shift by k positions: the rotation of the sinusoids, and the best linear map of each table."""

import streamlit as st

from pages.positions.choices import Choices, slider
from pages.positions.table_choice import choose_tables
from pages.shared import wording
from pages.shared.components.values import Panel, ValueCurve, value_curves, value_tables
from pages.shared.context import PageContext
from pages.shared.exhibit import exhibit
from transformer.views.positions import MatricesData
from transformer.views.positions_shifts import (
    ERROR_AXES,
    FIT_PAIRS,
    MAP_AXES,
    ShiftErrors,
    ShiftErrorsData,
    ShiftMaps,
)

_SHIFT = r"""
\begin{pmatrix} \sin(\omega(pos+k)) \\ \cos(\omega(pos+k)) \end{pmatrix} =
\begin{pmatrix} \cos\omega k & \sin\omega k \\ -\sin\omega k & \cos\omega k \end{pmatrix}
\begin{pmatrix} \sin(\omega\,pos) \\ \cos(\omega\,pos) \end{pmatrix}
"""


def render_shifts(context: PageContext, chosen: Choices) -> None:
    """Renders the maps from PE(pos) to PE(pos + k), their errors, and how much of the variance they explain."""
    shown = choose_tables(context, chosen)
    most = shown.usable_rows - FIT_PAIRS
    if most < 1:
        st.markdown(
            f"A map needs at least {FIT_PAIRS} pairs of positions; the shorter table has {shown.usable_rows} usable "
            "rows."
        )
        return
    if most > 1:
        slider("k", "Shift k", 1, most, chosen.k)
    k = min(max(chosen.k, 1), most)
    exhibit(shown.subject, ShiftMaps(**shown.size, k=k), draw=_maps_canvas, explain=_explain)
    data = exhibit(shown.subject, ShiftErrors(**shown.size, k=k), draw=lambda data: _errors_canvas(data, k))
    if data is None:
        return
    _render_shares(data, k)
    if shown.learned is not None:
        width = shown.learned.rows.shape[1]
        st.caption(
            f"Both maps use the first {data.rows} rows, those that training reached. With fewer pairs than dimensions "
            f"({width}), a linear map can fit any table exactly, so only held-out positions are informative: 0 is a "
            "perfect map, 1 is no better than always answering the mean."
        )


def _explain() -> None:
    st.markdown(
        "The paper chose sinusoids because, for any fixed k, PE(pos + k) is a linear function of PE(pos): a model "
        "could learn to attend k positions away from wherever it is. Each pair (sin, cos) is like the hand of a "
        "clock; k more positions turn it by the angle ω k, with ω = base^(−2i / d_model)."
    )
    st.latex(_SHIFT)


def _maps_canvas(data: MatricesData) -> None:
    panels = [Panel(matrix, title) for title, matrix in zip(data.titles, data.matrices, strict=True)]
    value_tables(panels, axes=MAP_AXES, quantity="entry", square=True, key="maps")


def _errors_canvas(data: ShiftErrorsData, k: int) -> None:
    st.markdown(
        f"**Sinusoidal:** turning each pair of dimensions by its own angle gives PE(pos + {k}) from PE(pos) at every "
        f"position, to within {wording.number(float(data.exact.max()))} in the float32 table, which is rounding alone."
    )
    curves = [ValueCurve(*curve) for curve in data.curves]
    value_curves(curves, axes=ERROR_AXES, log=True, marks=True, key="errors")


def _render_shares(data: ShiftErrorsData, k: int) -> None:
    st.markdown(
        "Each map was fitted by least squares to every second position and tested on the positions between. Share of "
        f"the variance of PE(pos + {k}) that it leaves unexplained:"
    )
    st.dataframe(
        {
            "table": data.titles,
            "pairs fitted": [len(fit.fitted) for fit in data.fits],
            "on fitted positions": [_share_text(fit.unexplained_fitted) for fit in data.fits],
            "on held-out positions": [_share_text(fit.unexplained_held_out) for fit in data.fits],
            "held out, PE(pos) unchanged": [_share_text(fit.unexplained_identity) for fit in data.fits],
        },
        hide_index=True,
        width="stretch",
    )


def _share_text(value: float) -> str:
    return f"{wording.number(100 * value)} %"
