"""Attention: every layer and head of one decoding, one of them large, and what happens when parts are switched off."""

import streamlit as st

from pages.common import controls
from pages.common.cell_panel import choose_cell, show_cell
from pages.common.compare import show_output
from pages.common.export_attention import take_attention_away
from pages.common.picture_proofs import prove_picture
from pages.common.pictures import draw_head, draw_overview, is_wide, source_of


def draw_large() -> None:
    """The chosen picture, with its proofs and what can be taken away under it."""
    made, source = draw_head(scene), source_of(scene)
    with st.container(horizontal=True, gap="small"):
        prove_picture(source, made)
        take_attention_away(scene, source, made)


scene = controls.frame("Which token looks at which, and what becomes of the output when it cannot?")
with st.container():  # what follows keeps its place, and with it the keyboard, however much is said here
    controls.choose_head(scene)
    show_output(scene)

with st.container(key="pictures"):
    if is_wide(scene.view.picture):
        draw_large()
        choose_cell(scene)
        draw_overview(scene)
    else:
        overview, large = st.columns([1, 2], gap="large")
        with overview:
            draw_overview(scene)
        with large:
            draw_large()
            choose_cell(scene)
show_cell(scene)
