""" "Check these numbers": claims about what is on the screen, measured when asked for."""

import streamlit as st

from pages.common import wording
from pages.common.controls import Scene
from pages.common.loading import get_proofs


def show_proofs(scene: Scene) -> None:
    """A closed line that, opened, runs the proofs for the decoding on the screen."""
    with st.expander("Check these numbers", on_change="rerun", key="proofs") as box:
        if not box.open:
            return
        for proof in get_proofs(scene.lab, scene.view.text, scene.view.switches):
            icon = ":green[:material/check:]" if proof.holds else ":red[:material/close:]"
            st.markdown(
                f"{icon} **{proof.claim}.** {proof.how[:1].upper()}{proof.how[1:]}: "
                f"**{wording.number(proof.measured)}** (allowed: {wording.number(proof.tolerance)})."
            )
