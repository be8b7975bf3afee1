"""Attention: one head of one decoding, large; beside it all others, and what happens when parts are switched off."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.attention.controls import choose_head, render_drawer, render_head_switches
from pages.attention.entry_choice import say_click
from pages.attention.entry_panel import render_entry, render_whole_sum
from pages.attention.pictures import is_wide, render_overview, render_picture, render_so_far
from pages.shared.before_after import render_output
from pages.shared.context import is_transformer
from pages.shared.decoding import decode
from pages.shared.header import frame


def columns() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Renders the large picture and, beside or below it, the place of all that a click or a switch may change."""
    if is_wide(context.view.picture):
        return st.container(), st.container()
    large, beside = st.columns([5, 3], gap="large")
    return large, beside


context = frame("Which tokens attend to which, and what changes if they can't?", needs="attention")
drawer = choose_head(context)
with st.container(key="pictures"):
    large, beside = columns()
with beside:
    entry, overview, output = st.container(), st.container(), st.container()
whole_sum, figures = st.container(), st.container()
so_far = overview.empty()
with output:
    render_head_switches(context)
    context = decode(context, on_progress=partial(render_so_far, context, so_far))
    render_output(context, figures=figures)
so_far.empty()
with drawer:
    render_drawer(context)
with overview:
    render_overview(context)
with large:
    render_picture(context)
    if is_transformer(context.lab):
        say_click(context)
if is_transformer(context.lab):
    with entry:
        render_entry(context)
    with whole_sum:
        render_whole_sum(context)
