"""The output on the screen; under switches, before and after side by side, and what was measured on equal prefixes."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared import loading, wording
from pages.shared.checks import check_compared, check_difference, check_road
from pages.shared.components.aligned_tokens import aligned_tokens
from pages.shared.components.token_chips import token_chips
from pages.shared.context import PageContext, is_dark
from pages.shared.export_before_after import SHIFT_SAID, take_compared_away, take_output_away, take_shift_away
from pages.shared.interventions.panel import switch_chips
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose
from transformer.figures.attention.comparison import WIDTH, difference_figure, probabilities_figure
from transformer.inspection.inspection import AttentionShift, Comparison

_MANY, _ROOM = 80, 240
"""Chips that stand as they are, and pixels for more."""


def show_output(context: PageContext, *, invitation: str = "Switch a head off to decode again beside it.") -> None:
    """The output as a line of chips, or both outputs with the switches between which they stand.

    `invitation` says which of the page's controls makes the second output.
    """
    switch_chips(context)
    if not context.view.switches:
        shown = context.inspection
        with room_for(len(shown.target_tokens)):
            token_chips(
                shown.target_tokens, label="output", probabilities=list(map(float, shown.probabilities)), key="output"
            )
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption(
                "Under each token: its probability when it was written. "
                f"{wording.smoothed(context.lab.checkpoint.settings.train.label_smoothing)} {invitation}",
                width="content",
            )
            check_road(context.lab, shown, key="proof-output")
            take_output_away(context)
        return
    comparison = loading.get_comparison(context.lab, context.view.text, context.view.switches)
    before, after = comparison.before, comparison.after
    with room_for(2 * len(comparison.alignment)):
        aligned_tokens(
            (before.target_tokens, before.probabilities.tolist()),
            (after.target_tokens, after.probabilities.tolist()),
            comparison.alignment,
            labels=("before", "after"),
            key="aligned",
        )
    result, measures = wording.effect(comparison)
    st.markdown(result)
    st.caption(" ".join((measures, *wording.pronoun_effect(comparison))), help=wording.KL_EXPLAINED)
    for note in wording.switch_notes(comparison):
        st.caption(note)
    with st.container(horizontal=True, gap="medium"):
        with st.container(width=WIDTH):
            _show_probabilities(comparison)
            with st.container(horizontal=True, gap="small"):
                check_compared(context, comparison)
                take_compared_away(context, comparison)
        with st.container(width=WIDTH):
            shift = loading.get_attention_shift(context.lab, context.view.text, context.view.switches)
            _show_difference(context, shift)
            with st.container(horizontal=True, gap="small"):
                check_difference(context)
                take_shift_away(context, shift)


def room_for(n_tokens: int) -> DeltaGenerator:
    """A place for so many chips: many scroll within a frame, so that the picture below stays near."""
    many = n_tokens > _MANY
    return st.container(height=_ROOM if many else "content", border=many)


def _show_probabilities(comparison: Comparison) -> None:
    """Each token of the original output before and after, given the original words before it."""
    st.caption("Each token of the original output, after the same words (teacher-forced)")
    figure = probabilities_figure(
        comparison.before.target_tokens,
        comparison.forced_before,
        comparison.forced_after,
        comparison.kl_divergence,
        dark=is_dark(),
    )
    scrolling_figure(figure, key="probabilities")


def _show_difference(context: PageContext, shift: AttentionShift) -> None:
    """What the switches did to the weights of the chosen head, and the way to the head that moved most."""
    kind, layer, head = context.view.kind, context.layer, context.head
    st.caption(f"{kind.label} · layer {layer} · head {head} · {SHIFT_SAID}")
    before, after = shift.before[kind], shift.after[kind]
    old, new = before.weights[layer, head], after.weights[layer, head]
    most, *_ = shift.largest()
    moved = float(abs(new - old).max())
    if moved < wording.NEGLIGIBLE:
        said = (
            f", but for rounding: by at most {wording.number(moved)}."
            if moved
            else ": the largest change is exactly 0."
        )
        st.markdown(f"No weight of this head moved{said}")
    else:
        mask = before.mask[layer] | after.mask[layer]
        figure = difference_figure(old, new, before.queries, before.keys, kind=kind, mask=mask, dark=is_dark())
        scrolling_figure(figure, key="difference")
    if most[1:] != (kind, layer, head):
        _offer_most_moved(*most)


def _offer_most_moved(moved: float, kind: str, layer: int, head: int) -> None:
    if moved < wording.NEGLIGIBLE:
        st.caption(f"Nor did a weight of any other head{f': at most by {wording.number(moved)}' if moved else ''}.")
        return
    st.button(
        f"Moved most, by {wording.number(moved)}: {kind.label.lower()}, layer {layer}, head {head}",  # type: ignore[index]
        key="most-moved",
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=lambda: choose(kind=kind, layer=layer, head=head),
    )
