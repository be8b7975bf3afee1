"""Masks: what padding and causal masks hide in a batch of the visitor's sentences, and what leaks without them."""

from pages.masks.sections import (
    beside,
    choose_batch,
    show_batch,
    show_empty_row,
    show_forcing,
    show_leak,
    show_masks,
    switch_masks,
)
from pages.shared import controls, loading
from transformer.views.subjects import Decoding

chosen = beside()
context = controls.frame("What must attention not see, and what leaks when it does?", own=chosen.parameters())
batch = choose_batch(context, chosen)
if batch is not None:
    show_batch(batch)
    switch_masks(context)
    controls.say(*controls.problems("switch", "kind"))
    show_masks(context, batch, chosen)
    show_leak(context, batch)
    sentence = Decoding(context.lab, loading.get_inspection(context.lab, context.view.text))
    show_forcing(context, sentence)
    show_empty_row(sentence)
