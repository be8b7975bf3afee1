"""Decoder steps: one translation token by token, what each step considered, and what if it had written another."""

from dataclasses import replace

import streamlit as st

from pages.common import controls
from pages.common.explain import steps_explained, what_am_i_looking_at
from pages.common.export_steps import take_step_away
from pages.common.step_beam import choose_beam, show_beam
from pages.common.step_choices import PAGE, Choices, choose_look
from pages.common.step_fragment import stepping
from pages.common.step_inside import show_inside
from pages.common.step_reference import show_reference
from pages.common.step_roads import Walk, show_roads, take_another_road, walk_of
from pages.common.step_samples import show_samples
from pages.common.step_view import choose_reference, choose_scale, offered, show_step

scene = controls.frame(
    "What did it consider at each token, and what if it had written another?", own=PAGE.follow_url().parameters()
)
chosen = PAGE.settle(scene.view)
scene = replace(scene, view=replace(scene.view, kind="cross"))


def step(scene: controls.Scene, walk: Walk, chosen: Choices) -> None:
    """What one step considered, and other roads from there."""
    show_step(scene, walk, chosen)
    take_step_away(scene, walk, chosen)
    take_another_road(scene, walk, offered(walk))
    choose_reference(scene, walk, chosen)


controls.switch_chips(scene)
choose_look(chosen)
match chosen.look:
    case "beam":
        choose_beam(chosen)
        show_beam(scene, chosen)
    case "samples":
        show_samples(scene, chosen)
    case "reference":
        show_reference(scene, chosen)
    case "inside":
        walk = walk_of(scene, chosen)
        show_roads(scene, walk, chosen)
        stepping(scene, walk, show_inside)
    case "steps":
        walk = walk_of(scene, chosen)
        show_roads(scene, walk, chosen)
        stepping(scene, walk, step)
        left, right = st.columns([3, 2], gap="medium")
        with left:
            what_am_i_looking_at(steps_explained(scene.lab.model.config), scene.lab.model.config)
        with right:
            controls.choose_layer_or_average(scene)
            with st.container(horizontal=True, vertical_alignment="center"):
                choose_scale(chosen)
                controls.switch_popover(scene)
if chosen.look != "steps":
    controls.switch_popover(scene)
