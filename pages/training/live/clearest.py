"""The clearest head of the last layer's cross-attention on the visitor's string, as its weights stand at one step."""

from typing import Any, NamedTuple

import streamlit as st

from pages.shared.components.frontend import Live
from pages.shared.components.head_matrix import described_matrix, draw_matrix
from pages.shared.exhibit import exhibit
from pages.shared.texts.catalogue import Texts
from transformer.figures.labels import SPECIAL_TOKENS
from transformer.runs.live.outputs import cross_attention
from transformer.runs.live.watched import LiveOutput
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.attention.matrix_data import MatrixData, Side
from transformer.views.training.timeline import AtStep, DecodedSnapshot, SnapshotAttention

TEXTS = Texts("live.head")
_STAYS = 0.05
"""By how much another head must be clearer for the picture to change to it: it would jump to and fro."""


class Clearest(NamedTuple):
    """A head and how clear it is."""

    layer: int
    head: int
    mean_of_largest: float
    """The mean, over the output's tokens, of the largest weight of its row."""

    @property
    def title(self) -> str:
        """Returns what stands above its picture."""
        return TEXTS("title", head=self.head)


def clearest_head(output: LiveOutput, before: Clearest | None = None) -> Clearest:
    """Returns the head of the last layer's cross-attention with the highest mean of each row's largest weight.

    Of earlier layers a head may be as clear, but what it looks up passes through others before a token is written. The
    head that was shown `before` stays until another is clearer by _STAYS.
    """
    weights = output.weights[-1, :, : output.weights.shape[-1]]  # the rows that are drawn
    sharpness = weights.max(axis=-1).mean(axis=-1)
    head = int(sharpness.argmax())
    if before is not None and sharpness[head] < sharpness[before.head] + _STAYS:
        head = before.head
    return Clearest(len(output.weights) - 1, head, float(sharpness[head]))


def output_of(snapshot: DecodedSnapshot) -> LiveOutput:
    """Returns a decoded snapshot's output with its cross-attention."""
    weights, mask = cross_attention(snapshot.attention, len(snapshot.tokens), len(snapshot.source))
    return LiveOutput(
        step=snapshot.step,
        text=snapshot.text,
        source=snapshot.source,
        tokens=snapshot.tokens,
        probabilities=snapshot.probabilities,
        ended=snapshot.ended,
        weights=weights,
        mask=mask,
    )


def render_head(snapshot: DecodedSnapshot | None, live: Live | None, *, key: str) -> None:
    """Renders that head's weights, each row a token that it writes, each column one that it reads."""
    if snapshot is None:
        if live is not None:
            draw_matrix(None, live=live, key=f"{key}-matrix")
        return
    output = output_of(snapshot)
    if not output.weights.size:
        st.caption(TEXTS("no_attention"))
        return
    found = clearest_head(output)
    view = SnapshotAttention(kind="cross", layer=found.layer, head=found.head)
    exhibit(
        AtStep(snapshot),
        view,
        draw=lambda data: draw_matrix(_described(output, found), live=live, key=f"{key}-matrix"),
        key=key,
        live=live is not None,
    )


def described_head(output: LiveOutput, before: Clearest | None) -> tuple[Clearest, dict[str, Any]]:
    """Returns the clearest head and its weights as their component draws them."""
    found = clearest_head(output, before)
    return found, _described(output, found)


def _described(output: LiveOutput, found: Clearest) -> dict[str, Any]:
    rows = min(len(output.tokens), len(output.source))  # an untrained model writes on and on
    matrix = MatrixData(
        values=output.weights[found.layer, found.head, :rows],
        rows=_side(output.tokens[:rows]),
        columns=_side(output.source),
        mask=output.mask[found.layer, :rows],
    )
    view = HeadMatrix(kind="cross", layer=found.layer, heads=(found.head,))
    return described_matrix(view, matrix, label=TEXTS("label"), title=found.title, steady=True)


def _side(tokens: tuple[str, ...]) -> Side:
    return Side(tokens, tuple((i,) for i in range(len(tokens))), tuple(token in SPECIAL_TOKENS for token in tokens))
