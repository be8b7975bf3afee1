"""The left half of Walkthrough: the sentence's translation, and the map whose steps can be clicked."""

import streamlit as st

from pages.shared import wording
from pages.shared.components.frontend import colours_of, declared
from pages.shared.context import Decoded
from pages.shared.exhibit import exhibit, get_data
from pages.walkthrough.choices import MAP, Place
from pages.walkthrough.moving import moving_numbers
from transformer.analysis.trace.diagram import unfolded
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Stack
from transformer.views.subjects import Traced
from transformer.views.trace import MapData, StepNumbers, TraceMap

_map = declared(
    "walkthrough_map",
    html="<div class='bar'></div><div class='root'></div>\n",
    css=("walkthrough_map.css",),
    js=("walkthrough_map.js", "walkthrough_motion.js"),
    reports=("picked",),
)


def render_reading(context: Decoded) -> None:
    """Shows what the sentence becomes."""
    becomes = wording.plain(context.inspection.translation) or "(nothing)"
    under = " under the switches" if context.view.switches else ""
    st.markdown(f"It becomes{under}: *{becomes}*")


def render_map(context: Decoded, traced: Traced, place: Place) -> None:
    """Shows the architecture with the chosen step, and what switches act on."""
    layers = unfolded(context.lab.model, place.layer)

    def draw(data: MapData) -> None:
        label = f"Map of {context.lab.name}. Arrow keys go from step to step, in the order of the computation."
        order = [[str(step), layers[step.stack]] for step in place.order]  # with the steps that are folded away
        colours = {kind: colours_of(kind) for kind in AttentionKind}
        moving = moving_numbers(
            data.drawing, place, get_data(traced, StepNumbers(step=str(place.step), layer=place.layer))
        )
        chosen = {"order": order, "chosen": str(place.step), "label": label, "colours": colours, "moving": moving}
        _map(key=MAP, data=data.drawing.data() | chosen)  # reports [step, layer], the layer -1 outside of layers
        if elsewhere := _in_other_layers(context, layers):
            names = wording.plain("; ".join(elsewhere))
            st.caption(f":orange[●] Also switched, in a layer that is not unfolded: {names}.")

    exhibit(traced, TraceMap(step=str(place.step), layer=place.layer), draw=draw)


def _in_other_layers(context: Decoded, layers: dict[Stack, int]) -> list[str]:
    """Returns the switches that act only in layers which the map does not unfold."""
    return [
        spec.label()
        for spec in context.inspection.interventions
        if all(site.layer is not None and site.layer != layers[site.stack] for site in spec.sites(context.lab.model))
    ]
