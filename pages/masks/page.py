"""Masks: what padding and causal masks hide in a batch of the visitor's sentences, and what leaks without them."""

from dataclasses import replace

import streamlit as st

from pages.masks.choices import PAGE, is_first_visit_without_link
from pages.masks.sections import (
    choose_batch,
    render_batch,
    render_effect,
    render_empty_row,
    render_forcing,
    render_leak,
    render_masks,
    render_toggles,
)
from pages.shared import loading
from pages.shared.context import say
from pages.shared.header import frame
from pages.shared.url.session import problems
from transformer.model.kinds import AttentionKind
from transformer.views.subjects import Decoding

# Without the causal mask this model loses one of two equal letters.
opens_on = "reverse", "m m a a m"
unlinked = is_first_visit_without_link()
context = frame("What must stay hidden, and what leaks if it doesn't?", PAGE, "a Transformer", opens_on)
chosen = PAGE.now
if unlinked:  # the causal triangle is what masks are known for
    chosen = replace(chosen, attention=AttentionKind.DECODER_SELF)
    PAGE.put(chosen)
context = replace(context, view=replace(context.view, kind=chosen.kind(context.view)))
above, below = st.container(), st.container()
with below:
    st.markdown("## The batch")
    batch = choose_batch(context, chosen)
if batch is not None:
    with above:
        render_toggles(context)
        say(*problems("switch", "kind"))
        render_effect(context, batch)
        render_masks(context, batch, chosen)
    with below:
        render_batch(batch)
        render_leak(context, batch)
        sentence = Decoding(context.lab, loading.get_inspection(context.lab, context.view.text))
        render_forcing(context, sentence)
        render_empty_row(sentence)
