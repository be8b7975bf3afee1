"""What a shift by k does: the rotation for sinusoids, the best linear map for both tables."""

import numpy as np
import streamlit as st

from pages.positions.checks import check_errors, check_maps
from pages.positions.choices import slider
from pages.positions.export_tables import take_errors_away, take_maps_away
from pages.positions.frame import beneath, both, draw_sizes
from pages.positions.tables import Tables
from pages.shared import wording
from pages.shared.components.value_curves import ValueCurve, value_curves
from pages.shared.components.value_tables import Panel, value_tables
from pages.shared.context import PageContext
from transformer.analysis.positions.tables import fit_shift, rotation, shift_error

_FIT_PAIRS = 8
"""Pairs of positions that a map is fitted to and tested on, at the least."""
_SHIFT = r"""
\begin{pmatrix} \sin(\omega(pos+k)) \\ \cos(\omega(pos+k)) \end{pmatrix} =
\begin{pmatrix} \cos\omega k & \sin\omega k \\ -\sin\omega k & \cos\omega k \end{pmatrix}
\begin{pmatrix} \sin(\omega\,pos) \\ \cos(\omega\,pos) \end{pmatrix}
"""


def draw_shifts(context: PageContext, shown: Tables) -> None:
    """What a shift by k does: the rotation for sinusoids, the best linear map for both tables."""
    draw_sizes(shown)
    values, names = both(shown, trained_only=True)
    rows = min(len(value) for value in values)
    most = rows - _FIT_PAIRS
    if most < 1:
        st.markdown(f"A map needs at least {_FIT_PAIRS} pairs of positions; the shorter table has {rows} rows to use.")
        return
    if most > 1:
        slider("k", "Shift k", 1, most, shown.choices.k)
    k = min(max(shown.choices.k, 1), most)
    turn = rotation(shown.d_model, k, shown.choices.base)
    fits = [fit_shift(value[:rows], k) for value in values]
    maps = {f"the rotation for k = {k}": turn}
    if len(fits) > 1:
        maps[f"best linear map of the learned table, k = {k}"] = fits[1].matrix
    panels = [Panel(matrix, title) for title, matrix in maps.items()]
    axes = ("dimension of PE(pos)", "dimension of PE(pos + k)")
    value_tables(panels, axes=axes, quantity="entry", square=True, key="maps")
    beneath(
        lambda: check_maps(turn, [value[:rows] for value in values], k, fits),
        lambda: take_maps_away(context, shown, k, rows, maps),
    )
    exact = shift_error(values[0], turn, k)
    st.markdown(
        f"**Sinusoidal:** turning each pair of dimensions by its own angle gives PE(pos + {k}) from PE(pos) at every "
        f"position, to within {wording.number(float(exact.max()))} in the float32 table: rounding alone."
    )
    curves = [ValueCurve("sinusoidal, rotation", np.arange(len(exact)), exact)]
    for name, fit in zip(("sinusoidal", "learned"), fits, strict=False):
        curves.append(ValueCurve(f"{name}, fitted map, held out", fit.held_out, fit.error[fit.held_out]))
    axes = ("position pos", "largest error of a dimension")
    value_curves(curves, axes=axes, log=True, marks=True, key="errors")
    beneath(
        lambda: check_errors(values, k, turn, exact, fits),
        lambda: take_errors_away(context, shown, k, rows, exact, fits),
    )
    st.markdown(
        "A map fitted by least squares to every second position, and measured on those between. Of the variance of "
        f"PE(pos + {k}) it leaves unexplained:"
    )
    st.dataframe(
        {
            "table": names,
            "pairs fitted": [len(fit.fitted) for fit in fits],
            "on fitted positions": [_share(fit.unexplained_fitted) for fit in fits],
            "on held-out positions": [_share(fit.unexplained_held_out) for fit in fits],
            "held out, if PE(pos) is left as it is": [_share(fit.unexplained_standing_still) for fit in fits],
        },
        hide_index=True,
        width="stretch",
    )
    if shown.learned is not None:
        st.caption(
            f"Both maps use the first {rows} rows, those that training reached. With fewer pairs than "
            f"dimensions ({values[1].shape[1]}) a linear map can fit any table exactly, which is why only held-out "
            "positions tell: 0 is a perfect map, 1 is no better than always answering the mean."
        )
    with st.expander("What am I looking at?"):
        st.markdown(
            "The paper chose sinusoids because, for any fixed k, PE(pos + k) is a linear function of PE(pos): a model "
            "could learn to look k places away wherever it stands. Each pair (sin, cos) is a hand of a clock; k more "
            "positions turn it by the angle ω k, with ω = base^(−2i / d_model)."
        )
        st.latex(_SHIFT)


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"
