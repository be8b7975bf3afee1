"""The controls that pages share, in the same place on each: which attention, which layer and head, what is off.

What else they share is found through here too: the frame (model_controls.py), the switches (switch_panel.py).
"""

import streamlit as st

from pages.common.fields import Width, box, segments, toggle
from pages.common.model_controls import change_text, frame
from pages.common.scene import Change, Scene, change, edit_marks, n_layers, say
from pages.common.state import choose, problems, visit, write_url
from pages.common.switch_panel import switch_chips, switch_popover
from pages.common.view import with_heads
from transformer.lab import KIND_SITES, AttentionKind

__all__ = [
    "AVERAGE",
    "Change",
    "Scene",
    "change",
    "change_text",
    "choose_head",
    "choose_kind",
    "choose_layer",
    "choose_layer_or_average",
    "edit_marks",
    "frame",
    "n_layers",
    "say",
    "switch_chips",
    "switch_popover",
    "write_url",
]

AVERAGE = "average"
_KIND_LABELS: dict[AttentionKind, str] = {
    "encoder_self": ":green[Encoder self]",
    "decoder_self": ":violet[Decoder self]",
    "cross": ":orange[Cross]",
}


def choose_head(scene: Scene) -> None:
    """One row: kind, layer, head, and what to switch off."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        choose_kind(scene)
        choose_layer(scene, width=80)
        heads = list(range(scene.lab.model.config.n_heads))
        box("Head", heads, scene.head, lambda head: choose(head=head), key="choose-head", width=80)
        _head_switches(scene)
    say(*problems("kind", "layer", "head"))


def choose_kind(scene: Scene) -> None:
    """Which of the three attentions."""
    segments(
        "Attention",
        tuple(_KIND_LABELS),
        scene.view.kind,
        lambda kind: choose(kind=kind),
        key="choose-kind",
        names=_KIND_LABELS.__getitem__,
    )


def choose_layer_or_average(scene: Scene) -> None:
    """Layer and head, where the mean over the heads can be chosen too."""
    left, right = st.columns(2)
    with left:
        choose_layer(scene)
    with right:
        heads = [AVERAGE, *range(scene.lab.model.config.n_heads)]
        head = AVERAGE if scene.view.head is None else scene.head
        box(
            "Head",
            heads,
            head,
            lambda head: choose(head=None if head == AVERAGE else head),
            key="choose-head",
            names=_head_name,
        )
    say(*problems("layer", "head"))


def choose_layer(scene: Scene, *, width: Width = "stretch") -> None:
    """A box with the layers of the stack."""
    layers = list(range(n_layers(scene.lab.model.config, scene.view.kind)))
    box("Layer", layers, scene.layer, lambda layer: choose(layer=layer), key="choose-layer", width=width)


def _head_switches(scene: Scene) -> None:
    """A toggle for the head that is shown, one for all heads of its block, and the rest behind a button."""
    stack, block = KIND_SITES[scene.view.kind]
    layer, head, n_heads = scene.layer, scene.head, scene.lab.model.config.n_heads
    off = scene.view.heads_off(stack, layer, block)
    everything = frozenset(range(n_heads))

    def set_heads(heads: frozenset[int]) -> None:
        choose(switches=with_heads(visit().view, stack, layer, block, heads).switches)

    with st.container(horizontal=True, vertical_alignment="center", gap="medium", width="content"):
        toggle(f"Head {head} off", head in off, lambda on: set_heads(_flipped(off, head, on)), key="switch-head")
        toggle(
            f"All {n_heads} off",
            off == everything,
            lambda on: set_heads(everything if on else frozenset()),
            key="switch-block",
        )
        switch_popover(scene, "More switches")


def _flipped(off: frozenset[int], head: int, on: bool) -> frozenset[int]:
    return off | {head} if on else off - {head}


def _head_name(head: int | str) -> str:
    return "average of all" if head == AVERAGE else str(head)
