"""The controls that pages share, in the same place on each: which attention, which layer and head, what is off."""

from collections.abc import Callable

import streamlit as st

from pages.shared import wording
from pages.shared.context import PageContext, say
from pages.shared.fields import Width, box, segments, toggle
from pages.shared.interventions.panel import switch_popover
from pages.shared.url.session import choose, problems, session
from transformer.lab import AttentionKind
from transformer.model.seq2seq import attention_layers

AVERAGE = "average"


def choose_head(context: PageContext) -> None:
    """Renders one row: kind, layer, head, and their switches."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        choose_kind(context)
        choose_layer(context, width=80)
        heads = list(range(context.lab.model.config.n_heads))
        box("Head", heads, context.head, lambda head: choose(head=head), key="choose-head", width=80)
        _head_switches(context)
    say(*problems("kind", "layer", "head"))


def choose_kind(context: PageContext, take: Callable[[AttentionKind], None] = lambda kind: choose(kind=kind)) -> None:
    """Draws the kinds of attention that the model has; `take` takes over the choice."""
    segments(
        "Attention",
        tuple(attention_layers(context.lab.model)),
        context.view.kind,
        take,
        key="choose-kind",
        names=wording.kind_label,
    )


def choose_layer_or_average(context: PageContext) -> None:
    """Renders the choice of layer and head; the mean over the heads can be chosen too."""
    left, right = st.columns(2)
    with left:
        choose_layer(context)
    with right:
        heads = [AVERAGE, *range(context.lab.model.config.n_heads)]
        head = AVERAGE if context.view.head is None else context.head
        box(
            "Head",
            heads,
            head,
            lambda head: choose(head=None if head == AVERAGE else head),
            key="choose-head",
            names=_head_name,
        )
    say(*problems("layer", "head"))


def choose_layer(context: PageContext, *, width: Width = "stretch") -> None:
    """Renders a box with the layers of the stack."""
    layers = list(range(attention_layers(context.lab.model)[context.view.kind]))
    box("Layer", layers, context.layer, lambda layer: choose(layer=layer), key="choose-layer", width=width)


def _head_switches(context: PageContext) -> None:
    """Renders a toggle for the selected head, one for all heads of its layer, and the rest behind a button."""
    stack, sublayer = context.view.kind.where
    layer, head, n_heads = context.layer, context.head, context.lab.model.config.n_heads
    off = context.view.heads_off(stack, layer, sublayer)
    everything = frozenset(range(n_heads))

    def set_heads(heads: frozenset[int]) -> None:
        choose(switches=session().view.with_heads_off(stack, layer, sublayer, heads).switches)

    with st.container(horizontal=True, vertical_alignment="center", gap="medium", width="content"):
        toggle(f"Head {head} off", head in off, lambda on: set_heads(_flipped(off, head, on)), key="switch-head")
        if n_heads > 1:
            toggle(
                f"All {n_heads} off",
                off == everything,
                lambda on: set_heads(everything if on else frozenset()),
                key="switch-block",
            )
        switch_popover(context, "More switches")


def _flipped(off: frozenset[int], head: int, on: bool) -> frozenset[int]:
    return off | {head} if on else off - {head}


def _head_name(head: int | str) -> str:
    return "average of all" if head == AVERAGE else str(head)
