"""bertviz's head, model and neuron view of this model's own attention, each in a frame of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.common.picture_data import Source, all_heads
from pages.common.picture_loading import get_vectors
from pages.common.picture_rollout import CannotDraw
from transformer.analysis.vectors import Vectors
from transformer.figures.bertviz import Shown, View, head_view, model_view, neuron_view

FRAME = "bertviz-frame"
"""The key of the container with the drawing."""


@dataclass(frozen=True)
class Framed:
    """What bertviz draws, and what it was given."""

    view: View
    shown: Shown
    vectors: Vectors | None = None
    """The neuron view's q and k."""


def show_bertviz(source: Source, *, dark: bool) -> Framed | None:
    """The view that was chosen, and a line for all that was done to its weights; None where nothing can be drawn."""
    try:
        weights, rows, columns, said = all_heads(source)
    except CannotDraw as reason:
        st.markdown(str(reason))
        return None
    if source.view.picture == "bertviz-neuron":
        attention = source.attention
        framed = _neuron(source, _shown(source, attention.weights, attention.queries, attention.keys), dark)
    else:
        if said:
            st.caption(" ".join(said))
        shown = _shown(source, weights, rows.labels, columns.labels)
        draw = model_view if source.view.picture == "bertviz-model" else head_view
        framed = Framed(draw(shown, dark=dark), shown)
    with st.container(key=FRAME):
        st.iframe(framed.view.html, height=framed.view.height)
    return framed


def first_row(source: Source) -> int | None:
    """The query that the neuron view unfolds at first; None: its last one."""
    return source.view.cell[0] if source.view.cell else None


def is_causal(source: Source) -> bool:
    """Whether the neuron view leaves out the keys after a query."""
    return source.view.kind == "decoder_self" and not np.triu(source.attention.mask, k=1).any()


def _shown(
    source: Source, weights: Float[ndarray, "layer head row column"], rows: Sequence[str], columns: Sequence[str]
) -> Shown:
    return Shown(weights, rows, columns, layer=source.layer, head=source.head, off=source.off)


def _neuron(source: Source, shown: Shown, dark: bool) -> Framed:
    vectors = get_vectors(source.lab, source.inspection, source.view.kind)
    row, causal = first_row(source), is_causal(source)
    _say_what_differs(source)
    return Framed(neuron_view(shown, vectors.q, vectors.k, row=row, causal=causal, dark=dark), shown, vectors)


def _say_what_differs(source: Source) -> None:
    """Where the scores that the neuron view computes from q and k are not those of the pass."""
    config = source.lab.model.config
    view = source.view
    ignored = [
        *["words are not merged"] * view.words,
        *["start and end marks stay"] * (view.specials != "shown"),
        *["weak cells stay"] * bool(view.threshold),
    ]
    if ignored:
        st.caption(
            f"Here {', '.join(ignored)}: a query and a key belong to one token of the pass, a merged word has none, "
            "and the softmax is over all keys, so that leaving some out would draw one that was never computed."
        )
    if not config.scale_scores:
        st.caption("This model does not divide q · k by √d: its own scores are √d times those drawn here.")
    if config.positions == "alibi" and source.view.kind != "cross":
        st.caption("ALiBi lowers a score by the distance after q · k, which is not drawn here; the softmax has it.")
