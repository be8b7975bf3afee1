"""Attention: every layer and head of one decoding, one of them large, and what happens when parts are switched off."""

import streamlit as st

from pages.common import controls
from pages.common.cell_panel import choose_cell, show_cell
from pages.common.compare import show_output
from pages.common.export_attention import take_attention_away
from pages.common.pictures import draw_head, draw_overview, is_wide

scene = controls.frame("Which token looks at which, and what becomes of the output when it cannot?")
controls.choose_head(scene)
show_output(scene)

with st.container(key="pictures"):
    if is_wide(scene.view.picture):
        draw_head(scene)
        choose_cell(scene)
        draw_overview(scene)
    else:
        overview, large = st.columns([1, 2], gap="large")
        with overview:
            draw_overview(scene)
        with large:
            draw_head(scene)
            take_attention_away(scene)
            choose_cell(scene)
show_cell(scene)
