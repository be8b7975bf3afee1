"""The output on the screen; under switches, before and after with what changed marked and the effect measured."""

import streamlit as st

from pages.common import loading, wording
from pages.common.components.token_chips import token_chips
from pages.common.controls import Scene, switch_chips


def show_output(scene: Scene) -> None:
    """The output as a line of chips, or both outputs with the switches between which they stand."""
    switch_chips(scene)
    if not scene.view.switches:
        shown = scene.inspection
        token_chips(
            shown.target_tokens, label="output", probabilities=list(map(float, shown.probabilities)), key="output"
        )
        st.caption(
            "Under each token: its probability when it was written. "
            f"{wording.smoothed(scene.lab.checkpoint.settings.train.label_smoothing)} "
            "Switch a head off to decode again beside it."
        )
        return
    comparison = loading.get_comparison(scene.lab, scene.view.text, scene.view.switches)
    marks = [{i for i, changed in enumerate(line) if changed} for line in comparison.marks]
    token_chips(
        comparison.before.target_tokens,
        label="before",
        changed=marks[0],
        probabilities=comparison.before.probabilities.tolist(),
        key="before",
    )
    token_chips(
        comparison.after.target_tokens,
        label="after",
        changed=marks[1],
        probabilities=comparison.after.probabilities.tolist(),
        key="after",
    )
    result, measures = wording.effect(comparison)
    st.markdown(result)
    st.caption(" ".join((measures, *wording.pronoun_effect(comparison))), help=wording.KL_EXPLAINED)
    for note in wording.switch_notes(comparison):
        st.caption(note)
