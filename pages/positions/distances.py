"""How alike positions are, in the sinusoidal table and in a learned one."""

import streamlit as st

from pages.positions.checks import check_matrices, check_offsets
from pages.positions.choices import segments
from pages.positions.export_tables import take_distances_away, take_offsets_away
from pages.positions.frame import beneath, both, draw_sizes, say_where_it_ends
from pages.positions.tables import Tables
from pages.shared import wording
from pages.shared.components.value_curves import ValueCurve, value_curves
from pages.shared.components.value_tables import Panel, value_tables
from pages.shared.context import PageContext
from transformer.analysis.positions.tables import by_offset, likeness

_LIKENESSES = {"cosine": "Cosine", "dot": "Dot product"}


def draw_distances(context: PageContext, shown: Tables) -> None:
    """How alike positions are, in both tables."""
    draw_sizes(shown)
    segments("likeness", "Measure", _LIKENESSES, shown.choices.likeness)
    kind = shown.choices.likeness
    values, names = both(shown)
    matrices = [likeness(value, kind) for value in values]
    quantity = _LIKENESSES[kind].lower()
    panels = [Panel(matrix, name) for matrix, name in zip(matrices, names, strict=True)]
    value_tables(panels, axes=("position", "position"), quantity=quantity, square=True, key="likeness")
    beneath(
        lambda: check_matrices(values, names, matrices, cosine=kind == "cosine"),
        lambda: take_distances_away(context, shown, matrices, names),
    )
    say_where_it_ends(shown)
    offsets = [by_offset(matrix) for matrix in matrices]
    curves = [ValueCurve(name, o.offset, o.mean, o.low, o.high) for name, o in zip(names, offsets, strict=True)]
    value_curves(curves, axes=("offset between positions", quantity), key="offsets")
    beneath(lambda: check_offsets(names, matrices, offsets), lambda: take_offsets_away(context, shown, offsets, names))
    spread = [float((o.high - o.low).max()) for o in offsets]
    said = (
        "The line is the mean over all pairs of positions this far apart; the band runs from lowest to highest. "
        f"Sinusoidal: the band is {wording.number(spread[0])} wide at most, so only the distance counts."
    )
    if len(spread) > 1:
        said += f" Learned: up to {wording.number(spread[1])}, so it also matters where the two stand."
    st.markdown(said)
