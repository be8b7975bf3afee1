"""Attention: every layer and head of one decoding, one of them large, and what happens when parts are switched off."""

import streamlit as st

from pages.common import controls
from pages.common.cell_panel import choose_cell, show_cell
from pages.common.compare import show_output
from pages.common.components.head_grid import head_grid
from pages.common.explain import kind_explained, what_am_i_looking_at
from pages.common.pictures import draw_head
from pages.common.proofs import show_proofs
from pages.common.state import GRID

scene = controls.frame("Which token looks at which, and what becomes of the output when it cannot?")
controls.choose_head(scene)
show_output(scene)

attention = scene.inspection.attention(scene.view.kind)
with st.container(key="pictures"):
    overview, large = st.columns([1, 2], gap="large")
with overview:
    st.caption("All layers and heads" + " · with the switches on" * bool(scene.view.switches))
    head_grid(
        attention.weights,
        kind=scene.view.kind,
        selected=(scene.layer, scene.head),
        off=scene.heads_off,
        mask=attention.mask,
        key=GRID,
    )
    what_am_i_looking_at(kind_explained(scene.view.kind, scene.lab.model.config), scene.lab.model.config)
    show_proofs(scene)
with large:
    draw_head(scene)
    choose_cell(scene)
show_cell(scene)
