"""The switches on a page: a chip for each that is on, and a panel behind a button in which others are set."""

from collections.abc import Callable

import streamlit as st

from pages.common import wording
from pages.common.scene import Scene, say
from pages.common.state import choose, problems, visit
from pages.common.switch_fields import fields_form
from pages.common.switch_forms import copy_form, masks_form, name_form, parts_form, row_form
from pages.common.switch_reach import idle_notes
from transformer.interventions import INTERVENTIONS

_SECTIONS: dict[str, Callable[[Scene], None]] = {
    "Parts": parts_form,
    "Masks": masks_form,
    **{kind.title: fields_form(kind) for kind in INTERVENTIONS if kind.title},
    "Row": row_form,
    "Copy": copy_form,
    "By name": name_form,
}
_WIDTH = 560


def switch_chips(scene: Scene) -> None:
    """A chip for each switch that is on; clicking it takes the switch back."""
    say(*problems("switch"))
    if not scene.inspection.ended and not scene.view.switches:
        st.caption(f"No end mark was written: the output was cut off at {len(scene.inspection.target_tokens)} tokens.")
    if not scene.view.switches:
        return
    with st.container(horizontal=True, gap="small"):
        for spec in scene.view.switches:
            st.button(
                wording.plain(spec.label()),
                key=f"remove-{spec}",
                icon=":material/close:",
                icon_position="right",
                help="Take this switch back",
                on_click=lambda spec=spec: choose(switches=visit().view.without(spec).switches),
            )
        if len(scene.view.switches) > 1:
            st.button("Take all back", key="remove-all", type="tertiary", on_click=lambda: choose(switches=()))
    for note in idle_notes(scene.inspection, causal_mask=scene.lab.model.config.causal_mask):
        st.caption(wording.plain(note))


def switch_popover(scene: Scene, label: str = "Switches") -> None:
    """A button that opens the panel. What is closed computes nothing."""
    with st.popover(label, key="switches", on_change="rerun") as box:
        if box.open:
            with st.container(width=_WIDTH):
                _panel(scene)


def _panel(scene: Scene) -> None:
    section = st.segmented_control(
        "What to switch",
        list(_SECTIONS),
        key="switch-section",
        default="Parts",
        required=True,
        label_visibility="collapsed",
        persist_state="session",
    )
    _SECTIONS[section](scene)
    st.caption("A switch changes the forward pass itself, for you alone.")
