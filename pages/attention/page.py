"""Attention: every layer and head of one decoding, one of them large, and what happens when parts are switched off."""

from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.attention.entry_panel import choose_entry, render_entry
from pages.attention.pictures import is_wide, render_overview, render_picture, render_so_far
from pages.shared.before_after import render_output
from pages.shared.context import is_transformer
from pages.shared.controls import choose_head
from pages.shared.header import frame


def columns() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Renders all heads and, beside or above them, the large picture."""
    if is_wide(context.view.picture):
        large = st.container()
        return st.container(), large
    overview, large = st.columns([1, 2], gap="large")
    return overview, large


context = frame("Which tokens attend to which, and what changes if they can't?", needs="attention")
with st.container():  # what follows keeps its place, and with it the keyboard, however much is said here
    choose_head(context)
    output = st.container()
with st.container(key="pictures"):
    overview, large = columns()
    so_far = overview.empty()
context = replace(context, meanwhile=partial(render_so_far, context, so_far))
with output:
    render_output(context)
so_far.empty()
with overview:
    render_overview(context)
with large:
    render_picture(context)
    if is_transformer(context.lab):
        choose_entry(context)
if is_transformer(context.lab):
    render_entry(context)
