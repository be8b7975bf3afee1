"""The recorded pass of the Walkthrough, computed once for all who look at the same sentence under the same switches."""

import streamlit as st

from pages.common.controls import Scene
from pages.common.loading import age_of, get_inspection, get_lab
from transformer.analysis.whole_pass import WholePass, record_pass, sees_later


def get_walk(scene: Scene, step: int) -> WholePass:
    """The pass over the scene's sentence and the output decoded from it, the step's own one where each step has other
    numbers; read-only, shared."""
    own = step if sees_later(scene.lab.model, scene.inspection.interventions) else None
    return _walk(scene.lab.name, age_of(scene.lab), scene.view.text, tuple(map(str, scene.view.switches)), own)


@st.cache_resource(max_entries=16, show_spinner="Recording one pass")
def _walk(name: str, age: int, text: str, switches: tuple[str, ...], step: int | None) -> WholePass:
    lab, seen = get_lab(name), get_inspection(get_lab(name), text, switches)
    return record_pass(
        lab.model,
        seen.source_ids,
        seen.target_ids,
        seen.interventions,
        log_probs=seen.log_probs,
        source_again=(*lab.tokenizer.encode(text), lab.model.config.eos_id),
        step=step,
    )
