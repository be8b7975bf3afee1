"""Break it: the positions of one stack changed, the sentence decoded again, and both outputs compared."""

from collections.abc import Sequence

import streamlit as st

from pages.common import fields
from pages.common.compare import show_output
from pages.common.controls import Scene
from pages.common.position_choices import Choices, segments
from pages.common.position_frame import OTHER_KINDS, STACKS
from pages.common.state import choose, visit
from pages.common.view import merged
from transformer.interventions import PositionEdit, PositionsChanged
from transformer.taps import Stack

_EDITS = {
    "": "As they are",
    "remove": "Remove",
    "shuffle": "Shuffle",
    "shift": "Shift",
    "scale": "Scale",
    "same": "Two in one place",
}
_SCALES = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)
_LARGEST_SHIFT = 64


def draw_break(scene: Scene, chosen: Choices) -> None:
    """What to do to the positions, then the output before and after."""
    kind = scene.lab.model.config.positions
    if kind in OTHER_KINDS:
        st.markdown(f"**{scene.lab.name}** adds nothing to its embeddings that could be changed. {OTHER_KINDS[kind]}")
        show_output(scene, invitation="")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        segments("stack", "Positions of", STACKS, chosen.stack)
        _edits(scene, chosen.stack)
        _value(scene, chosen.stack)
    show_output(scene, invitation="Change the positions above to decode again beside it.")
    with st.expander("What am I looking at?"):
        st.markdown(
            "The chosen stack adds something else to its embeddings, for you alone, and the sentence is decoded "
            "again. *Remove* adds nothing: the encoder then reads a bag of words. *Shuffle* gives every token "
            "another's place. *Shift* moves all by k: if only distances mattered, nothing would change. *Scale* turns "
            "the positions up or down against the words. With *two in one place* the model cannot tell which of two "
            "tokens came first."
        )


def _edits(scene: Scene, stack: Stack) -> None:
    now = _now(scene, stack)
    offered = [edit for edit in _EDITS if (stack, edit) != ("decoder", "shuffle")]
    fields.segments(
        "What to do",
        offered,
        now.edit if now else "",
        lambda edit: _put(stack, _first(stack, edit)),
        key="break-edit",
        names=_EDITS.__getitem__,
        hide_label=False,
    )


def _value(scene: Scene, stack: Stack) -> None:
    now = _now(scene, stack)
    if now is None:
        return
    match now.edit:
        case "shuffle":
            again = PositionsChanged(stack, "shuffle", int(now.value) + 1)
            st.button("Another order", key="break-again", on_click=_put, args=(stack, again))
        case "shift":
            most = min(_LARGEST_SHIFT, scene.lab.model.config.max_length - 1)
            by = min(int(now.value), most)
            fields.slider(
                "Shift by", 1, most, by, lambda k: _take(stack, "shift", k), key="break-shift", step=1, width=220
            )
        case "scale":
            fields.box(
                "Times",
                sorted({*_SCALES, now.value}),
                now.value,
                lambda times: _take(stack, "scale", times),
                key="break-scale",
                names="{:g}".format,
                width=120,
            )
        case "same":
            _two_tokens(scene, stack, now)


def _two_tokens(scene: Scene, stack: Stack, now: PositionsChanged) -> None:
    tokens = scene.inspection.source_tokens if stack == "encoder" else scene.inspection.decoder_inputs
    named = range(max(len(tokens), max(now.tokens) + 1))
    fields.several(
        "Two tokens",
        named,
        now.tokens,
        lambda chosen: _take_two(stack, chosen),
        key="break-same",
        names=lambda i: f"{i} {tokens[i]}" if i < len(tokens) else str(i),
        width=320,
    )


def _first(stack: Stack, edit: str) -> PositionsChanged | None:
    """An edit as it is when just chosen."""
    match edit:
        case "remove":
            return PositionsChanged(stack, "remove")
        case "shuffle" | "shift":
            return PositionsChanged(stack, edit, 1)
        case "scale":
            return PositionsChanged(stack, "scale", 2.0)
        case "same":
            return PositionsChanged(stack, "same", tokens=(0, 1))
    return None


def _take(stack: Stack, edit: PositionEdit, value: float) -> None:
    _put(stack, PositionsChanged(stack, edit, value))


def _take_two(stack: Stack, chosen: Sequence[int]) -> None:
    """Takes the two tokens; of three the last two, and of one none yet."""
    tokens = tuple(sorted(chosen[-2:]))
    if len(tokens) == 2:
        _put(stack, PositionsChanged(stack, "same", tokens=tokens))


def _now(scene: Scene, stack: Stack) -> PositionsChanged | None:
    found = (spec for spec in PositionsChanged.among(scene.view.switches) if spec.stack == stack)
    return next(found, None)


def _put(stack: Stack, spec: PositionsChanged | None) -> None:
    others = [s for s in visit().view.switches if not PositionsChanged(stack, "remove").replaces(s)]
    choose(switches=merged([*others, spec] if spec else others))
