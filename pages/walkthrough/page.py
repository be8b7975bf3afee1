"""Walkthrough: one real forward pass as a map of the architecture, each station with its equation and its numbers."""

import streamlit as st

from pages.shared import controls
from pages.walkthrough.checks import check_map
from pages.walkthrough.choices import choices, place
from pages.walkthrough.export import take_map_away, take_station_away
from pages.walkthrough.loading import get_walk
from pages.walkthrough.panel import choose_place, show_map, show_reading, show_station, walk_on

chosen = choices()
context = controls.frame(
    "How does a sentence become its translation? One real pass, station by station.", own=chosen.parameters()
)
show_reading(context)
controls.switch_chips(context)
here, said = place(context)
walk = get_walk(context, here.step)
with st.container(key="walkthrough"):
    left, right = st.columns([4, 5], gap="medium")
with left, st.container(key="walkthrough-map-frame"):
    show_map(context, here)
    with st.container(horizontal=True):
        check_map(context, walk)
        take_map_away(context, here, walk)
    controls.switch_popover(context)
with right:
    walk_on(context, here, where="above")
    choose_place(context, here)
    controls.say(*said, *controls.problems("layer", "head"))
    take_station_away(context, here, walk, show_station(context, here, walk))
    walk_on(context, here, where="below")
