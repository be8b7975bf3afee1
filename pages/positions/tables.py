"""The sinusoidal and the learned table: their values, single dimensions, and how similar positions are."""

import numpy as np
import streamlit as st

from pages.positions.choices import Choices, segments, slider
from pages.positions.table_choice import choose_tables, render_extent
from pages.shared import wording
from pages.shared.components.values import Panel, ValueCurve, value_curves, value_tables
from pages.shared.context import PageContext
from pages.shared.exhibit import exhibit
from transformer.views.positions import (
    QUANTITIES,
    DimensionsData,
    MatricesData,
    OffsetData,
    PositionDimensions,
    PositionSimilarity,
    PositionTables,
    SimilarityByOffset,
    TablesData,
)

_MEASURES = {"cosine": "Cosine", "dot": "Dot product"}
_SINUSOIDS = r"""
\begin{aligned}
PE_{(pos,\,2i)} &= \sin\!\left(pos / 10000^{2i/d_{model}}\right) \\
PE_{(pos,\,2i+1)} &= \cos\!\left(pos / 10000^{2i/d_{model}}\right)
\end{aligned}
"""


def render_tables(context: PageContext, chosen: Choices) -> None:
    """Renders both tables on one scale, then one pair of dimensions as curves."""
    shown = choose_tables(context, chosen)
    tables = PositionTables(**shown.size, layout=chosen.layout)
    exhibit(shown.subject, tables, draw=_table_canvas, explain=_explain)
    render_extent(shown, " (dotted line)")
    if shown.d_model > 2:
        slider("frequency", "Pair of dimensions", 0, shown.d_model // 2 - 1, chosen.frequency)
    pair = min(chosen.frequency, shown.d_model // 2 - 1)
    data = exhibit(shown.subject, PositionDimensions(**shown.size, frequency=pair), draw=_dimensions_canvas)
    if data is not None:
        st.markdown(
            f"Dimensions {data.first} and {data.first + 1} repeat every **{_length_text(data.wavelength)}** positions. "
            f"Wavelengths run from {_length_text(data.shortest)} (2π) to {_length_text(data.longest)} here; as d_model "
            f"grows, the longest approaches {chosen.base:,} × 2π = {_length_text(chosen.base * 2 * np.pi)}."
        )


def _explain() -> None:
    st.markdown(
        "Each row is added to the embedding of the token at that position; both tables share one scale around 0. "
        "The sinusoids follow a formula: fast waves on the left, slow ones on the right, sine and cosine of one "
        "wave next to each other (*interleaved*, as in the paper). *Concatenated* puts all sines first and all "
        "cosines after them. These are the same numbers in another order, and the next matrix product can undo "
        "it, so programs use either (Marian and tensor2tensor concatenate); a trained model's weights fit only the "
        "order that it was trained with. A learned table starts as noise, and its rows are trained like any weight."
    )
    st.latex(_SINUSOIDS)


def render_distances(context: PageContext, chosen: Choices) -> None:
    """Renders the similarity of positions in both tables."""
    shown = choose_tables(context, chosen)
    segments("likeness", "Measure", _MEASURES, chosen.likeness)
    quantity = QUANTITIES[chosen.likeness]

    def matrices(data: MatricesData) -> None:
        panels = [Panel(matrix, title) for title, matrix in zip(data.titles, data.matrices, strict=True)]
        value_tables(panels, axes=("position", "position"), quantity=quantity, square=True, key="likeness")

    def profiles(data: OffsetData) -> None:
        named = zip(data.titles, data.profiles, strict=True)
        curves = [ValueCurve(title, p.offset, p.mean, p.low, p.high) for title, p in named]
        value_curves(curves, axes=("offset between positions", quantity), key="offsets")

    exhibit(shown.subject, PositionSimilarity(**shown.size, measure=chosen.likeness), draw=matrices)
    render_extent(shown)
    data = exhibit(shown.subject, SimilarityByOffset(**shown.size, measure=chosen.likeness), draw=profiles)
    if data is None:
        return
    spread = [float((profile.high - profile.low).max()) for profile in data.profiles]
    text = (
        "The line is the mean over all pairs of positions this far apart; the band runs from the lowest to the "
        f"highest. Sinusoidal: the band is at most {wording.number(spread[0])} wide, so only the distance matters."
    )
    if len(spread) > 1:
        text += f" Learned: up to {wording.number(spread[1])}, so it also matters where the two positions are."
    st.markdown(text)


def _table_canvas(data: TablesData) -> None:
    ends = [None, data.untrained_from][: len(data.tables)]
    value_tables([Panel(*panel) for panel in zip(data.tables, data.titles, ends, strict=True)], key="tables")


def _dimensions_canvas(data: DimensionsData) -> None:
    named = zip(data.labels, data.curves, strict=True)
    curves = [ValueCurve(label, np.arange(len(curve)), curve) for label, curve in named]
    value_curves(curves, axes=("position", "value"), key="dimensions")


def _length_text(value: float) -> str:
    return f"{value:,.2f}" if value < 1_000 else f"{value:,.0f}"
