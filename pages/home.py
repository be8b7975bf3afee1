"""Home: a sentence in, its translation and its cross-attention out, and where to look further."""

from dataclasses import replace

import streamlit as st

from pages.common import controls, loading, wording
from pages.common.components.token_lines import token_lines
from pages.common.explain import LINES_EXPLAINED, what_am_i_looking_at
from pages.common.export_home import take_lines_away
from pages.common.links import change_to_try, look_further, try_a_change
from pages.common.pictures import heads_replaced
from pages.common.proofs import prove_lines
from transformer.analysis.effects import head_average

scene = controls.frame("Type a sentence. See its translation, and which words each word looked at.")
scene = replace(scene, view=replace(scene.view, kind="cross"))
inspection = scene.inspection
attention = inspection.cross
chosen = scene.view.head
weights = head_average(attention.weights, scene.layer) if chosen is None else attention.weights[scene.layer, chosen]
shown = range(scene.lab.model.config.n_heads) if chosen is None else (chosen,)
off = all((scene.layer, head) in heads_replaced(scene) for head in shown)
change = controls.change(scene)
gold = loading.reference(scene.lab, scene.view.text)

controls.switch_chips(scene)
token_lines(
    inspection.source_tokens,
    inspection.target_tokens,
    weights,
    kind="cross",
    source_unseen=scene.unseen,
    source_changed=change.source,
    target_changed=change.target,
    source_label="sentence",
    target_label="translation",
    off=off,
    key="home-lines",
)
whose = "the average of its heads" if chosen is None else f"head {chosen}"
st.caption(
    f"Lines are cross-attention: layer {scene.layer}, {whose}, as it was while each word was being written."
    + " Nothing of what is seen here goes any further: a switch put something else in its place." * off
)
with st.container(horizontal=True):
    prove_lines(scene, weights)
    take_lines_away(scene, weights, off=off)
st.markdown(f"#### {wording.plain(inspection.translation) or '*(nothing was written)*'}")
said = (change.sentence, wording.pronoun(inspection, gold), wording.verdict(inspection.translation, gold))
offered = change_to_try(scene)
if offered or any(said):
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(" ".join(filter(None, said)) or "Try a change:", width="content")
        if offered:
            try_a_change(offered)
if wording.pronoun(inspection, gold):
    st.caption(wording.smoothed(scene.lab.checkpoint.settings.train.label_smoothing))

st.space("small")
look_further(scene)

st.space("small")
left, right = st.columns([3, 2], gap="medium")
with left:
    what_am_i_looking_at(LINES_EXPLAINED, scene.lab.model.config)
with right, st.expander("Another layer or head"):
    controls.choose_layer_or_average(scene)
controls.write_url()
