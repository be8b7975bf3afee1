"""Attention: every layer and head of one decoding, one of them large, and what happens when parts are switched off."""

from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.common import controls
from pages.common.cell_panel import choose_cell, show_cell
from pages.common.compare import show_output
from pages.common.export_attention import take_attention_away
from pages.common.picture_proofs import prove_picture
from pages.common.pictures import draw_head, draw_overview, draw_so_far, is_wide, source_of


def draw_large() -> None:
    """The chosen picture, with its proofs and what can be taken away under it."""
    made, source = draw_head(scene), source_of(scene)
    with st.container(horizontal=True, gap="small"):
        prove_picture(source, made)
        take_attention_away(scene, source, made)


def rooms() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Where all heads stand and, beside or above them, the large picture."""
    if is_wide(scene.view.picture):
        large = st.container()
        return st.container(), large
    overview, large = st.columns([1, 2], gap="large")
    return overview, large


scene = controls.frame("Which token looks at which, and what becomes of the output when it cannot?")
with st.container():  # what follows keeps its place, and with it the keyboard, however much is said here
    controls.choose_head(scene)
    output = st.container()
with st.container(key="pictures"):
    overview, large = rooms()
    so_far = overview.empty()
scene = replace(scene, meanwhile=partial(draw_so_far, scene, so_far))
with output:
    show_output(scene)
so_far.empty()
with overview:
    draw_overview(scene)
with large:
    draw_large()
    choose_cell(scene)
show_cell(scene)
