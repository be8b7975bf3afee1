"""Attention: every layer and head of one decoding, one of them large, and what happens when parts are switched off."""

from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.attention.entry_panel import choose_cell, show_cell
from pages.attention.export_pictures import take_attention_away
from pages.attention.picture_checks import check_picture
from pages.attention.pictures import draw_head, draw_overview, draw_so_far, is_wide, source_of
from pages.shared import controls
from pages.shared.before_after import show_output


def draw_large() -> None:
    """The chosen picture, with its proofs and what can be taken away under it."""
    made, source = draw_head(context), source_of(context)
    with st.container(horizontal=True, gap="small"):
        check_picture(source, made)
        take_attention_away(context, source, made)


def rooms() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Where all heads stand and, beside or above them, the large picture."""
    if is_wide(context.view.picture):
        large = st.container()
        return st.container(), large
    overview, large = st.columns([1, 2], gap="large")
    return overview, large


context = controls.frame("Which token looks at which, and what becomes of the output when it cannot?")
with st.container():  # what follows keeps its place, and with it the keyboard, however much is said here
    controls.choose_head(context)
    output = st.container()
with st.container(key="pictures"):
    overview, large = rooms()
    so_far = overview.empty()
context = replace(context, meanwhile=partial(draw_so_far, context, so_far))
with output:
    show_output(context)
so_far.empty()
with overview:
    draw_overview(context)
with large:
    draw_large()
    choose_cell(context)
show_cell(context)
