"""Break it: change the positions of one stack, decode the sentence again, and compare both outputs."""

from collections.abc import Sequence

import streamlit as st

from pages.positions.choices import Choices, segments
from pages.positions.table_choice import OTHER_KINDS, STACKS
from pages.shared import fields
from pages.shared.before_after import render_output
from pages.shared.context import Decoded, PageContext
from pages.shared.decoding import decode
from pages.shared.url.session import choose, session
from transformer.interventions import EditPositions, PositionEdit, merged
from transformer.model.taps import Stack

_EDITS = {
    "": "As they are",
    "remove": "Remove",
    "shuffle": "Shuffle",
    "shift": "Shift",
    "scale": "Scale",
    "same": "Two at one position",
}
_SCALES = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)
_LARGEST_SHIFT = 64


def render_edits(context: PageContext, chosen: Choices) -> None:
    """Renders the controls that change positions, then the output before and after."""
    kind = context.lab.model.config.positions
    if kind in OTHER_KINDS:
        st.markdown(f"**{context.lab.name}** adds nothing to its embeddings that could be changed. {OTHER_KINDS[kind]}")
        render_output(decode(context), invitation="")
        return
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    with row:
        segments("stack", "Positions of", STACKS, chosen.stack)
        _render_choice(context, chosen.stack)
    decoded = decode(context)
    with row:
        _render_value(decoded, chosen.stack)
    render_output(decoded, invitation="Change the positions above to decode again beside it.", explain=_explain)


def _explain() -> None:
    st.markdown(
        "The chosen stack adds other positions to its embeddings, in your session only, and the sentence is "
        "decoded again. *Remove* adds nothing: the encoder then reads a bag of words. *Shuffle* swaps the "
        "positions of the tokens. *Shift* moves all of them by k: if only distances mattered, nothing would "
        "change. *Scale* makes positions stronger or weaker against the words. With *two at one position* the "
        "model cannot tell which of two tokens came first. Where the output stays the same, the probabilities "
        "below still say how much the model relied on what was changed: short sentences often have only one "
        "likely order."
    )


def _render_choice(context: PageContext, stack: Stack) -> None:
    now = _now(context, stack)
    offered = {edit: name for edit, name in _EDITS.items() if (stack, edit) != ("decoder", "shuffle")}
    fields.segments(
        "What to do",
        offered,
        now.edit if now else "",
        lambda edit: _put(stack, _first(stack, edit)),
        key="break-edit",
        hide_label=False,
    )


def _render_value(context: Decoded, stack: Stack) -> None:
    now = _now(context, stack)
    if now is None:
        return
    match now.edit:
        case "shuffle":
            again = EditPositions(stack, "shuffle", int(now.value) + 1)
            st.button("Another order", key="break-again", on_click=_put, args=(stack, again))
        case "shift":
            most = min(_LARGEST_SHIFT, context.lab.model.config.max_length - 1)
            by = min(int(now.value), most)
            fields.slider(
                "Shift by", 1, most, by, lambda k: _put_value(stack, "shift", k), key="break-shift", step=1, width=220
            )
        case "scale":
            fields.box(
                "Factor",
                sorted({*_SCALES, now.value}),
                now.value,
                lambda times: _put_value(stack, "scale", times),
                key="break-scale",
                names="{:g}".format,
                width=120,
            )
        case "same":
            _render_two_tokens(context, stack, now)


def _render_two_tokens(context: Decoded, stack: Stack, now: EditPositions) -> None:
    tokens = context.inspection.source_tokens if stack == "encoder" else context.inspection.decoder_inputs
    named = range(max(len(tokens), max(now.tokens) + 1))
    fields.several(
        "Two tokens",
        named,
        now.tokens,
        lambda chosen: _put_two(stack, chosen),
        key="break-same",
        names=lambda i: f"{i} {tokens[i]}" if i < len(tokens) else str(i),
        width=320,
    )


def _first(stack: Stack, edit: str) -> EditPositions | None:
    """Returns an edit with its initial value."""
    match edit:
        case "remove":
            return EditPositions(stack, "remove")
        case "shuffle" | "shift":
            return EditPositions(stack, edit, 1)
        case "scale":
            return EditPositions(stack, "scale", 2.0)
        case "same":
            return EditPositions(stack, "same", tokens=(0, 1))
    return None


def _put_value(stack: Stack, edit: PositionEdit, value: float) -> None:
    _put(stack, EditPositions(stack, edit, value))


def _put_two(stack: Stack, chosen: Sequence[int]) -> None:
    """Applies the edit to the last two chosen tokens; one token alone changes nothing yet."""
    tokens = tuple(sorted(chosen[-2:]))
    if len(tokens) == 2:
        _put(stack, EditPositions(stack, "same", tokens=tokens))


def _now(context: PageContext, stack: Stack) -> EditPositions | None:
    found = (spec for spec in EditPositions.among(context.view.switches) if spec.stack == stack)
    return next(found, None)


def _put(stack: Stack, spec: EditPositions | None) -> None:
    others = [s for s in session().view.switches if not EditPositions(stack, "remove").replaces(s)]
    choose(switches=merged([*others, spec] if spec else others))
