"""The switches on a page: a chip for each that is applied, and a panel behind a button to apply others."""

from collections.abc import Callable

import streamlit as st

from pages.shared import wording
from pages.shared.context import Decoded, say
from pages.shared.fields import popover
from pages.shared.interventions.fields import fields_form
from pages.shared.interventions.forms import copy_form, masks_form, name_form, parts_form, row_form
from pages.shared.texts.catalogue import Texts
from pages.shared.url.session import choose, problems, session
from transformer.inspection.inspection import idle_notes
from transformer.interventions import INTERVENTIONS

TEXTS = Texts("frame.switches")
_SECTIONS: dict[str, Callable[[Decoded], None]] = {
    "Parts": parts_form,
    "Masks": masks_form,
    **{kind.title: fields_form(kind) for kind in INTERVENTIONS if kind.title},
    "Row": row_form,
    "Copy": copy_form,
    "By name": name_form,
}
_WIDTH = 560


def switch_chips(context: Decoded) -> None:
    """Renders a chip for each applied switch; a click removes it."""
    say(*problems("switch"))
    if not context.inspection.ended and not context.view.switches:
        st.caption(TEXTS("endless", tokens=len(context.inspection.target_tokens)))
    if not context.view.switches:
        return
    with st.container(horizontal=True, gap="small"):
        for spec in context.view.switches:
            st.button(
                wording.plain(spec.label()),
                key=f"remove-{spec}",
                icon=":material/close:",
                icon_position="right",
                help=TEXTS("remove"),
                on_click=lambda spec=spec: choose(switches=session().view.without(spec).switches),
            )
        if len(context.view.switches) > 1:
            st.button(TEXTS("clear"), key="remove-all", type="tertiary", on_click=lambda: choose(switches=()))
    for note in idle_notes(context.inspection, causal_mask=not context.lab.model.needs_recomputation()):
        st.caption(wording.plain(note))


def switch_popover(context: Decoded) -> None:
    """Renders a button that opens the panel."""
    popover(TEXTS("switches"), lambda: switch_panel(context), key="switches")


def switch_panel(context: Decoded) -> None:
    """Renders the forms of all switches, one at a time."""
    with st.container(width=_WIDTH):
        _panel(context)


def _panel(context: Decoded) -> None:
    section = st.segmented_control(
        "What to switch",
        list(_SECTIONS),
        key="switch-section",
        default="Parts",
        required=True,
        label_visibility="collapsed",
        persist_state="session",
    )
    _SECTIONS[section](context)
    st.caption("A switch changes the forward pass itself, in your session only.")
