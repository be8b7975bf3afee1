"""Walkthrough: one real forward pass as a map of the architecture, each station with its equation and its numbers."""

import streamlit as st

from pages.common import controls
from pages.common.export_walkthrough import take_map_away, take_station_away
from pages.common.walkthrough_choices import choices, place
from pages.common.walkthrough_loading import get_walk
from pages.common.walkthrough_panel import choose_place, show_map, show_reading, show_station, walk_on
from pages.common.walkthrough_proofs import prove_map

chosen = choices()
scene = controls.frame(
    "How does a sentence become its translation? One real pass, station by station.", own=chosen.parameters()
)
show_reading(scene)
controls.switch_chips(scene)
here, said = place(scene)
walk = get_walk(scene, here.step)
with st.container(key="walkthrough"):
    left, right = st.columns([4, 5], gap="medium")
with left, st.container(key="walkthrough-map-frame"):
    show_map(scene, here)
    with st.container(horizontal=True):
        prove_map(scene, walk)
        take_map_away(scene, here, walk)
    controls.switch_popover(scene)
with right:
    walk_on(scene, here, where="above")
    choose_place(scene, here)
    controls.say(*said, *controls.problems("layer", "head"))
    take_station_away(scene, here, walk, show_station(scene, here, walk))
    walk_on(scene, here, where="below")
