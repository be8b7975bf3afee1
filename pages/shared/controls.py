"""The controls that pages share, in the same place on each: which attention, which layer and head."""

from collections.abc import Callable

import streamlit as st

from pages.shared import wording
from pages.shared.context import PageContext
from pages.shared.fields import Width, box, segments
from pages.shared.texts.catalogue import Texts
from pages.shared.url.session import choose
from transformer.lab import AttentionKind
from transformer.model.seq2seq import attention_layers

TEXTS = Texts("frame.controls")
AVERAGE = "average"


def choose_kind(context: PageContext, take: Callable[[AttentionKind], None] = lambda kind: choose(kind=kind)) -> None:
    """Draws the kinds of attention that the model has; `take` takes over the choice."""
    segments(
        TEXTS("attention"),
        tuple(attention_layers(context.lab.model)),
        context.view.kind,
        take,
        key="choose-kind",
        names=wording.kind_label,
    )


def choose_layer_or_average(context: PageContext) -> None:
    """Renders the choice of layer and head; the mean over the heads can be chosen too.

    What is wrong with those of a link is for the page to say, as these may be folded away.
    """
    left, right = st.columns(2)
    with left:
        choose_layer(context)
    with right:
        heads = [AVERAGE, *range(context.lab.model.config.n_heads)]
        head = AVERAGE if context.view.head is None else context.head
        box(
            TEXTS("head"),
            heads,
            head,
            lambda head: choose(head=None if head == AVERAGE else head),
            key="choose-head",
            names=_head_name,
        )


def choose_layer(context: PageContext, *, width: Width = "stretch") -> None:
    """Renders a box with the layers of the stack."""
    layers = list(range(attention_layers(context.lab.model)[context.view.kind]))
    box(TEXTS("layer"), layers, context.layer, lambda layer: choose(layer=layer), key="choose-layer", width=width)


def _head_name(head: int | str) -> str:
    return TEXTS("average") if head == AVERAGE else str(head)
