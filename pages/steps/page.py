"""Decoder steps: one translation token by token, what each step considered, and what if it had written another."""

from dataclasses import replace

import streamlit as st

from pages.shared import controls
from pages.shared.explain import steps_explained, what_am_i_looking_at
from pages.steps.beam import choose_beam, show_beam
from pages.steps.branches import Walk, show_roads, take_another_road, walk_of
from pages.steps.candidates import choose_reference, choose_scale, offered, show_step
from pages.steps.choices import PAGE, Choices, choose_look
from pages.steps.export_steps import take_step_away
from pages.steps.fragment import stepping
from pages.steps.logit_lens import show_inside
from pages.steps.samples import show_samples
from pages.steps.teacher_forcing import show_reference

context = controls.frame(
    "What did it consider at each token, and what if it had written another?", own=PAGE.follow_url().parameters()
)
chosen = PAGE.settle(context.view)
context = replace(context, view=replace(context.view, kind="cross"))


def step(context: controls.PageContext, walk: Walk, chosen: Choices) -> None:
    """What one step considered, and other roads from there."""
    show_step(context, walk, chosen)
    take_step_away(context, walk, chosen)
    take_another_road(context, walk, offered(walk))
    choose_reference(context, walk, chosen)


controls.switch_chips(context)
choose_look(chosen)
match chosen.look:
    case "beam":
        choose_beam(chosen)
        show_beam(context, chosen)
    case "samples":
        show_samples(context, chosen)
    case "reference":
        show_reference(context, chosen)
    case "inside":
        walk = walk_of(context, chosen)
        show_roads(context, walk, chosen)
        stepping(context, walk, show_inside)
    case "steps":
        walk = walk_of(context, chosen)
        show_roads(context, walk, chosen)
        stepping(context, walk, step)
        left, right = st.columns([3, 2], gap="medium")
        with left:
            what_am_i_looking_at(steps_explained(context.lab.model.config), context.lab.model.config)
        with right:
            controls.choose_layer_or_average(context)
            with st.container(horizontal=True, vertical_alignment="center"):
                choose_scale(chosen)
                controls.switch_popover(context)
if chosen.look != "steps":
    controls.switch_popover(context)
