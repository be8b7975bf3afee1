"""The head of cross-attention whose weights are clearest, on the visitor's string, with the newest weights."""

from typing import NamedTuple

import numpy as np
import streamlit as st

from pages.shared.components.head_matrix import head_matrix
from pages.shared.exhibit import exhibit
from transformer.figures.labels import SPECIAL_TOKENS
from transformer.model.kinds import AttentionKind
from transformer.runs.run_folder import Run
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.attention.matrix_data import MatrixData, Side
from transformer.views.training.timeline import AtStep, DecodedSnapshot, SnapshotAttention, SnapshotData


class Clearest(NamedTuple):
    """A head and how clear it is."""

    layer: int
    head: int
    mean_of_largest: float
    """The mean, over the output's tokens, of the largest weight of its row."""


def clearest_head(shown: DecodedSnapshot) -> Clearest:
    """Returns the head of cross-attention with the highest mean of each row's largest weight."""
    weights = shown.attention[AttentionKind.CROSS].weights
    weights = weights[:, :, : weights.shape[-1]]  # the rows that are drawn
    sharpness = weights.max(axis=-1).mean(axis=-1)
    layer, head = np.unravel_index(int(sharpness.argmax()), sharpness.shape)
    return Clearest(int(layer), int(head), float(sharpness[layer, head]))


def render_head(run: Run | None, shown: DecodedSnapshot | None, found: Clearest | None) -> None:
    """Renders that head's weights, each row a token that it writes, each column one that it reads."""
    if run is None or shown is None or found is None:
        st.caption("The attention of its clearest head will be drawn here: which letters it looks at.")
        return
    st.markdown(
        f"**Where it looks** · layer {found.layer}, head {found.head}, its clearest",
        help=f"Of all heads of cross-attention it has the largest weights: {found.mean_of_largest:.2f} a row.",
    )
    view = SnapshotAttention(kind="cross", layer=found.layer, head=found.head)
    exhibit(AtStep(shown), view, draw=lambda data: _draw(view, data), key="playground", live=run.status.active)


def _draw(view: SnapshotAttention, data: SnapshotData) -> None:
    rows = min(len(data.queries), len(data.keys))  # an untrained model writes on and on
    matrix = MatrixData(
        values=data.weights[:rows],
        rows=_side(data.queries[:rows]),
        columns=_side(data.keys),
        mask=data.mask[:rows],
    )
    drawn = HeadMatrix(kind=view.kind, layer=view.layer, heads=(view.head,))
    head_matrix(drawn, matrix, label="The clearest head of cross-attention", key="playground-matrix")


def _side(tokens: tuple[str, ...]) -> Side:
    return Side(tokens, tuple((i,) for i in range(len(tokens))), tuple(token in SPECIAL_TOKENS for token in tokens))
