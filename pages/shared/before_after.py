"""The output on the screen; under switches, before and after side by side, and what was measured on equal prefixes."""

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared import loading, wording
from pages.shared.components.tokens import aligned_tokens, room_for, token_chips
from pages.shared.context import Decoded, PageContext, is_dark
from pages.shared.exhibit import exhibit
from pages.shared.guard import guard
from pages.shared.interventions.panel import switch_chips
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose
from transformer.figures.attention.matrix import WIDTH
from transformer.model.kinds import AttentionKind
from transformer.views.before_after import (
    SHIFT_SAID,
    AttentionDifference,
    BothOutputs,
    DifferenceData,
    TokenProbabilities,
)
from transformer.views.steps.branches import BranchesData, BranchLines
from transformer.views.steps.subjects import Branches
from transformer.views.subjects import Compared


@guard("The output")
def render_output(
    context: Decoded,
    *,
    invitation: str = "Switch a head off to decode again beside it.",
    explain: Callable[[], object] | None = None,
    figures: DeltaGenerator | None = None,
) -> None:
    """Renders the output as a line of chips, or under switches both outputs and their differences.

    `invitation` says which of the page's controls makes the second output; `explain` is for the menu. The figures of
    the differences go into `figures`, or follow.
    """
    switch_chips(context)
    if not context.view.switches:
        smoothed = wording.smoothed(context.lab.checkpoint.settings.train.label_smoothing)
        exhibit(
            Branches(context.lab, (context.inspection,)),
            BranchLines(),
            draw=_render_chips,
            note=f"Under each token: its probability when it was written. {smoothed} {invitation}",
            explain=explain,
            width=560,
        )
        return
    comparison = loading.get_comparison(context.lab, context.view.text, context.view.switches)
    before, after = comparison.before, comparison.after
    result, measures = wording.effect(comparison)
    left = wording.heads_left(comparison)
    st.markdown(" ".join(filter(None, (result, left))), help=f"{measures} {wording.KL_EXPLAINED}")
    aligned_tokens(
        (before.target_tokens, before.probabilities.tolist()),
        (after.target_tokens, after.probabilities.tolist()),
        comparison.alignment,
        labels=("before", "after"),
        key="aligned",
    )
    for note in (*wording.pronoun_effect(comparison), *wording.switch_notes(comparison)):
        st.caption(note)
    subject = Compared(context.lab, comparison)
    with figures or st.container(), st.container(horizontal=True, gap="medium"):
        with st.container(width=WIDTH):
            st.caption("Each token of the original output, after the same words (teacher-forced)")
            exhibit(subject, TokenProbabilities(), also={"Both outputs": BothOutputs()}, explain=explain, width=560)
        with st.container(width=WIDTH):
            _render_difference(context, subject)


def _render_chips(data: BranchesData) -> None:
    (output,) = data
    with room_for(len(output.tokens)):
        token_chips(output.tokens, label="output", probabilities=output.probabilities.tolist(), key="output")


def _render_difference(context: PageContext, subject: Compared) -> None:
    """Renders the change of the selected head's weights, and a button for the head that changed most."""
    kind, layer, head = context.view.kind, context.layer, context.head
    said = f"{kind.label} · layer {layer} · head {head} · {SHIFT_SAID}"
    st.caption(said)
    view = AttentionDifference(kind=kind, layer=layer, head=head)

    def draw(data: DifferenceData) -> None:
        moved = float(abs(data.after - data.before).max())
        if moved >= wording.NEGLIGIBLE:
            scrolling_figure(view.figure(data, dark=is_dark()), key="difference")
        elif moved:
            st.markdown(f"No weight of this head moved beyond rounding: at most {wording.number(moved)}.")
        else:
            st.markdown("No weight of this head moved: the largest change is exactly 0.")
        most, *place = data.most
        if (most, *place) != (kind, layer, head):
            _offer_most_moved(data.moved, AttentionKind(most), *place)

    exhibit(subject, view, draw=draw, said=said, width=560)


def _offer_most_moved(moved: float, kind: AttentionKind, layer: int, head: int) -> None:
    if moved < wording.NEGLIGIBLE:
        st.caption(f"No other head's weights changed either{f': at most by {wording.number(moved)}' if moved else ''}.")
        return
    st.button(
        f"Moved most, by {wording.number(moved)}: {kind.phrase}, layer {layer}, head {head}",
        key="most-moved",
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=lambda: choose(kind=kind, layer=layer, head=head),
    )
