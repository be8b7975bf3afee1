"""Masks: what padding and causal masks hide in a batch of the visitor's sentences, and what leaks without them."""

from pages.common import controls, loading
from pages.common.mask_study import (
    beside,
    choose_batch,
    show_batch,
    show_empty_row,
    show_forcing,
    show_leak,
    show_masks,
    switch_masks,
)
from transformer.views.subjects import Decoding

chosen = beside()
scene = controls.frame("What must attention not see, and what leaks when it does?", own=chosen.parameters())
batch = choose_batch(scene, chosen)
if batch is not None:
    show_batch(batch)
    switch_masks(scene)
    controls.say(*controls.problems("switch", "kind"))
    show_masks(scene, batch, chosen)
    show_leak(scene, batch)
    sentence = Decoding(scene.lab, loading.get_inspection(scene.lab, scene.view.text))
    show_forcing(scene, sentence)
    show_empty_row(sentence)
