"""Masks: what padding and causal masks hide in a batch of the visitor's sentences, and what leaks without them."""

from pages.common import controls
from pages.common.export_masks import take_masks_away, take_row_away
from pages.common.loading import get_empty_row
from pages.common.mask_study import (
    beside,
    choose_batch,
    draw_batch,
    draw_masks,
    switch_masks,
    tell_empty_row,
    tell_forcing,
    tell_leak,
)

chosen = beside()
scene = controls.frame("What must attention not see, and what leaks when it does?", own=chosen.parameters())
batch = choose_batch(scene, chosen)
if batch is not None:
    texts, leak = batch
    draw_batch(scene, leak, texts)
    switch_masks(scene)
    controls.say(*controls.problems("switch", "kind"))
    with draw_masks(scene, leak, texts, chosen):
        take_masks_away(scene, leak, texts, chosen)
    tell_leak(scene, leak, texts)
    tell_forcing(scene)
    row = get_empty_row(scene.lab, scene.view.text)
    with tell_empty_row(scene, row):
        take_row_away(scene, row)
