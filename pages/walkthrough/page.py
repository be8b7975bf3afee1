"""Walkthrough: one real forward pass as a map of the architecture, each step with its equation and its numbers."""

import streamlit as st

from pages.shared import fields
from pages.shared.context import say
from pages.shared.decoding import decode
from pages.shared.header import frame
from pages.shared.interventions.panel import switch_chips, switch_popover
from pages.shared.url.session import problems
from pages.walkthrough.choices import PAGE, follow_picks, place
from pages.walkthrough.map_section import render_map, render_reading
from pages.walkthrough.overview_section import choose_followed, render_overview
from pages.walkthrough.step_section import choose_place, get_subject, render_step, render_walk

follow_picks()
context = frame("How does a sentence become its translation? One real pass, step by step.", PAGE, needs="known steps")
context = decode(context)
render_reading(context)
switch_chips(context)
here, said = place(context)
traced = get_subject(context, here.position)
shown = {"step": "Step by step", "overview": "Three tokens at a glance"}
is_overview = PAGE.now.show == "overview"
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    fields.segments("Show", shown, PAGE.now.show, PAGE.take("show"), key="walk-show")
    if is_overview:
        choose_followed(context, here)
if is_overview:
    say(*said)
    render_overview(context, traced, here)
    st.stop()
with st.container(key="walkthrough"):
    left, right = st.columns([4, 5], gap="medium")
with left, st.container(key="walkthrough-map-frame"):
    render_map(context, traced, here)
    switch_popover(context)
with right:
    render_walk(context, here, where="above")
    choose_place(context, here)
    say(*said, *problems("layer", "head"))
    render_step(context, traced, here)
    render_walk(context, here, where="below")
