"""Decoder steps: one translation token by token, what each step considered, and what if it had written another."""

from dataclasses import replace

import streamlit as st

from pages.shared.context import PageContext, say
from pages.shared.controls import choose_layer_or_average
from pages.shared.decoding import decode
from pages.shared.header import frame
from pages.shared.interventions.panel import switch_chips, switch_popover
from pages.shared.url.session import problems
from pages.steps.beam import render_beam
from pages.steps.branches import Walk, decode_branches, render_branches, render_other_tokens
from pages.steps.choices import PAGE, Choices, render_look
from pages.steps.logit_lens import render_logit_lens
from pages.steps.samples import render_samples
from pages.steps.step import offered, render_reference_rank, render_scale, render_step
from pages.steps.stepper import render_stepped
from pages.steps.teacher_forcing import render_reference
from transformer.model.seq2seq import attention_layers

context = frame("What did it consider at each token, and what if it had written another?", PAGE)
chosen = PAGE.settle(context.view)
context = decode(replace(context, view=replace(context.view, kind="cross")))


def step(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """Renders what one step considered, and the ways to leave it."""
    render_step(context, walk, chosen)
    render_other_tokens(context, walk, offered(walk))
    render_reference_rank(context, walk, chosen)


switch_chips(context)
render_look(chosen)
match chosen.look:
    case "beam":
        render_beam(context, chosen)
    case "samples":
        render_samples(context, chosen)
    case "reference":
        render_reference(context, chosen)
    case "inside":
        walk = decode_branches(context, chosen)
        render_branches(context, walk, chosen)
        render_stepped(context, walk, render_logit_lens)
    case "steps":
        walk = decode_branches(context, chosen)
        render_branches(context, walk, chosen)
        render_stepped(context, walk, step)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            if attention_layers(context.lab.model):
                with st.container(width=320):
                    choose_layer_or_average(context)
            render_scale(chosen)
            switch_popover(context)
        say(*problems("layer", "head"))
if chosen.look != "steps":
    switch_popover(context)
