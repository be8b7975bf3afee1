"""The architecture as a drawing whose parts can be chosen, by click or with the arrow keys."""

from collections.abc import Sequence
from typing import Any

from pages.shared.components.frontend import colours_of, declared
from transformer.model.kinds import AttentionKind

_component = declared("walkthrough_map", css=("walkthrough_map.css",), js=("walkthrough_map.js",), reports=("picked",))


def walkthrough_map(
    drawing: dict[str, Any], *, order: Sequence[tuple[str, int]], chosen: str, label: str, key: str
) -> None:
    """Draws the map; what is picked comes as [step, layer] in the state of `key`, its layer -1 outside of layers.

    `order` holds every step with its layer: the arrow keys go through all of them, drawn or folded away.
    """
    _component(
        key=key,
        data={
            **drawing,
            "order": [list(entry) for entry in order],
            "chosen": chosen,
            "label": label,
            "colours": {kind: colours_of(kind) for kind in AttentionKind},
        },
    )
