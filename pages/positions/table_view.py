"""The table itself: the sinusoids beside a learned table, and single dimensions of both as curves."""

import numpy as np
import streamlit as st
from numpy import ndarray

from pages.positions.checks import check_tables
from pages.positions.choices import segments, slider
from pages.positions.export_tables import take_dimensions_away, take_tables_away
from pages.positions.frame import beneath, draw_sizes, say_where_it_ends
from pages.positions.tables import Tables
from pages.shared.components.value_curves import ValueCurve, value_curves
from pages.shared.components.value_tables import Panel, value_tables
from pages.shared.context import PageContext
from transformer.analysis.positions.tables import concatenated, wavelengths

_LAYOUTS = {"interleaved": "Interleaved", "concatenated": "Concatenated"}
_SINUSOIDS = r"""
\begin{aligned}
PE_{(pos,\,2i)} &= \sin\!\left(pos / 10000^{2i/d_{model}}\right) \\
PE_{(pos,\,2i+1)} &= \cos\!\left(pos / 10000^{2i/d_{model}}\right)
\end{aligned}
"""


def draw_table(context: PageContext, shown: Tables) -> None:
    """Both tables on one scale, then one pair of dimensions as curves."""
    draw_sizes(shown)
    chosen = shown.choices
    segments("layout", "Layout of the sinusoidal table", _LAYOUTS, chosen.layout)
    sinusoidal = shown.sinusoidal
    laid_out = concatenated(sinusoidal) if chosen.layout == "concatenated" else sinusoidal
    panels = [Panel(laid_out, shown.sinusoidal_name)]
    if shown.learned is not None:
        panels.append(Panel(shown.cut, shown.learned_name, shown.learned.trained))
    value_tables(panels, key="tables")
    beneath(lambda: check_tables(shown, key="proof-tables"), lambda: take_tables_away(context, shown))
    say_where_it_ends(shown, " (dotted line)")
    if shown.d_model > 2:
        slider("frequency", "Pair of dimensions", 0, shown.d_model // 2 - 1, chosen.frequency)
    i = min(chosen.frequency, shown.d_model // 2 - 1)
    lengths = wavelengths(shown.d_model, chosen.base)
    curves, labels = _dimensions(shown, i)
    drawn = [ValueCurve(label, np.arange(len(curve)), curve) for label, curve in zip(labels, curves, strict=True)]
    value_curves(drawn, axes=("position", "value"), key="dimensions")
    beneath(
        lambda: check_tables(shown, key="proof-dimensions"),
        lambda: take_dimensions_away(context, shown, curves, labels),
    )
    st.markdown(
        f"Dimensions {2 * i} and {2 * i + 1} repeat every **{_length(lengths[i])}** positions. Wavelengths run "
        f"from {_length(lengths[0])} (2π) to {_length(lengths[-1])} here; as d_model grows, the last one approaches "
        f"{chosen.base:,} × 2π = {_length(chosen.base * 2 * np.pi)}."
    )
    with st.expander("What am I looking at?"):
        st.markdown(
            "Each row is what is added to the embedding of the token at that position; both tables share one scale "
            "around 0. The sinusoids follow from a formula: fast waves left, slow ones right, sine and cosine of one "
            "wave side by side (*interleaved*, as the paper writes it). *Concatenated* puts all sines first and all "
            "cosines after: the same numbers in another order, which the next matrix product undoes, so that programs "
            "(Marian, tensor2tensor) may use either; a trained model's weights fit only its own. A learned table "
            "begins as noise and its rows are trained like any weight."
        )
        st.latex(_SINUSOIDS)


def _dimensions(shown: Tables, i: int) -> tuple[list[ndarray], list[str]]:
    """One pair of dimensions of each table, and what they are called."""
    first, second = 2 * i, 2 * i + 1
    curves = [shown.sinusoidal[:, first], shown.sinusoidal[:, second]]
    labels = [f"sinusoidal, dimension {first} (sine)", f"sinusoidal, dimension {second} (cosine)"]
    if shown.learned is not None:
        for dimension in range(first, min(second + 1, shown.cut.shape[1])):
            curves.append(shown.cut[:, dimension])
            labels.append(f"learned, dimension {dimension}")
    return curves, labels


def _length(value: float) -> str:
    return f"{value:,.2f}" if value < 1_000 else f"{value:,.0f}"
