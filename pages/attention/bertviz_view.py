"""bertviz's head, model and neuron view of this model's own attention, each in a frame of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.attention.picture_data import Source, all_heads
from pages.attention.picture_loading import get_vectors
from pages.attention.picture_rollout import CannotDraw
from transformer.analysis.attention.vectors import Vectors
from transformer.figures.bertviz import Shown, View, head_view, model_view, neuron_view

FRAME = "bertviz-frame"
"""The key of the container with the drawing."""
_ROUNDING = 1e-4
"""A smaller difference of a weight is not a switch's."""


@dataclass(frozen=True)
class Framed:
    """What bertviz draws, and what it was given."""

    view: View
    shown: Shown
    vectors: Vectors | None = None
    """The neuron view's q and k."""
    said: str = ""
    """What was done to the weights."""


def show_bertviz(source: Source, *, dark: bool) -> Framed | None:
    """The view that was chosen, and a line for all that was done to its weights; None where nothing can be drawn."""
    try:
        weights, rows, columns, said = all_heads(source)
    except CannotDraw as reason:
        st.markdown(str(reason))
        return None
    if source.view.picture == "bertviz-neuron":
        framed = _neuron(source, dark)
    else:
        if said:
            st.caption(" ".join(said))
        shown = _shown(source, weights, rows.labels, columns.labels)
        draw = model_view if source.view.picture == "bertviz-model" else head_view
        framed = Framed(draw(shown, dark=dark), shown, said=" ".join(said))
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
    source: Source,
    weights: Float[ndarray, "layer head row column"],
    rows: Sequence[str],
    columns: Sequence[str],
    said: str = "",
) -> Shown:
    off, at_mean = source.heads_off, source.off - source.heads_off
    return Shown(weights, rows, columns, layer=source.layer, head=source.head, off=off, at_mean=at_mean, said=said)


def _neuron(source: Source, dark: bool) -> Framed:
    attention, vectors = source.attention, get_vectors(source.lab, source.inspection, source.view.kind)
    row, causal = first_row(source), is_causal(source)
    _say_what_is_ignored(source)
    said = " ".join(what_differs(source, vectors))
    shown = _shown(source, attention.weights, attention.queries, attention.keys, said)
    return Framed(neuron_view(shown, vectors.q, vectors.k, row=row, causal=causal, dark=dark), shown, vectors)


def _say_what_is_ignored(source: Source) -> None:
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


def what_differs(source: Source, vectors: Vectors) -> tuple[str, ...]:
    """Where what the neuron view draws under "Softmax", the weights of the pass, is not the softmax of the scores that
    it computes from q and k."""
    config, kind, attention = source.lab.model.config, source.view.kind, source.attention
    specs = [(s, s.address.layer) for s in source.inspection.interventions if s.address and s.address.layer is not None]
    specs = [(s, layer) for s, layer in specs if s.acts_in(*kind.where)]
    n_queries, n_keys = len(attention.queries), len(attention.keys)
    closed = [
        f"{layer} · {query} · {key}"
        for spec, layer in specs
        for query, key in spec.forbidden
        if query < n_queries and key < (query + 1 if is_causal(source) else n_keys)
    ]
    overwritten = [
        f"{layer} · {row.head} · {row.query}"
        for spec, layer in specs
        for row in spec.overwritten
        if row.query < n_queries and _is_overwritten(source, vectors, layer, row.head, row.query)
    ]
    said = {
        "This model does not divide q · k by √d: its own scores are √d times those drawn here.": (
            not config.scale_scores
        ),
        "ALiBi lowers a score by the distance after q · k, which is not drawn here; the softmax has it.": (
            config.positions == "alibi" and kind != "cross"
        ),
        "A switch overwrote rows of weights: what stands under Softmax there is what it put, whatever q · k is "
        f"(layer · head · query {', '.join(overwritten)}).": bool(overwritten),
        "Under Softmax a key that a switch forbids has 0, whatever q · k is "
        f"(layer · query · key {', '.join(closed)}).": bool(closed),
    }
    return tuple(sentence for sentence, holds in said.items() if holds)


def _is_overwritten(source: Source, vectors: Vectors, layer: int, head: int, query: int) -> bool:
    """Whether a row of weights is another than the softmax of its scores: one over a single key never is."""
    q, k = vectors.q[layer, head, query], vectors.k[layer, head]
    allowed = source.attention.mask[layer, query]
    if not allowed.any():
        return False
    scores = (k @ q)[allowed].astype(np.float64) / (np.sqrt(len(q)) if source.lab.model.config.scale_scores else 1)
    softmax = np.exp(scores - scores.max())
    row = source.attention.weights[layer, head, query][allowed]
    return bool(np.abs(softmax / softmax.sum() - row).max() > _ROUNDING)
