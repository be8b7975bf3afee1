"""bertviz's head, model and neuron view of given attention, each one HTML document that needs no network."""

from transformer.figures.bertviz.shown import Shown, View
from transformer.figures.bertviz.views import head_view, model_view, neuron_view

__all__ = ["Shown", "View", "head_view", "model_view", "neuron_view"]
