"""The architecture as a drawing whose parts can be chosen, by click or with the arrow keys."""

from collections.abc import Sequence
from typing import Any

from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of
from transformer.figures import theme
from transformer.model.kinds import AttentionKind

_component = component(
    "attention_lab_walkthrough_map",
    html="<div class='root'></div>\n",
    css=text_of("walkthrough_map.css"),
    js=text_of("walkthrough_map.js"),
)


def walkthrough_map(
    drawing: dict[str, Any], *, order: Sequence[tuple[str, int]], chosen: str, label: str, key: str
) -> None:
    """Draws the map; what is picked comes as [step, layer] in the state of `key`, its layer -1 outside of layers.

    `order` holds every step with its layer: the arrow keys go through all of them, drawn or folded away.
    """
    _component(
        key=key,
        on_picked_change=lambda: None,
        data={
            **drawing,
            "order": [list(entry) for entry in order],
            "chosen": chosen,
            "label": label,
            "colours": {
                kind: {"light": theme.kind_colour(kind), "dark": theme.kind_colour(kind, dark=True)}
                for kind in AttentionKind
            },
        },
    )
