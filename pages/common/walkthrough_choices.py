"""What is chosen on the Walkthrough alone: the station and the tokens that are followed; in the URL too.

Layer and head are the visitor's on every page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from pages.common import wording
from pages.common.controls import Scene
from pages.common.state import choose, visit, write_url
from transformer.analysis.stations import Station, n_layers, stations
from transformer.figures.theme import Kind
from transformer.lab import Inspection

MAP = "walkthrough-map"
"""Key of the drawing whose stations can be clicked."""
_KEY, _OWNER, _MISREAD = "walkthrough-page", "walkthrough-sentence", "walkthrough-misread"


@dataclass(frozen=True)
class Choices:
    """Where the visitor stands. None means "what suits best"."""

    station: str = ""
    """As a station prints: encoder.self.weights."""
    token: int | None = None
    """The source token that is followed through the encoder."""
    step: int | None = None
    """The step, hence the decoder's token, that is followed through the decoder."""

    def parameters(self) -> dict[str, str]:
        """The query parameters; defaults are left out."""
        found = {"station": self.station, "token": self.token, "step": self.step}
        return {name: str(value) for name, value in found.items() if value not in ("", None)}


@dataclass(frozen=True)
class Place:
    """The chosen station as this model has it, with the tokens as this sentence has them."""

    station: Station
    order: tuple[Station, ...]
    """All stations of this model."""
    layer: int
    head: int
    token: int
    step: int

    @property
    def row(self) -> int:
        """The followed token's row at this station."""
        return self.token if self.station.stack == "encoder" else self.step

    @property
    def index(self) -> int:
        return self.order.index(self.station)


def choices() -> Choices:
    """What is chosen now: a click on the map, the URL's word where someone else wrote it, else what was chosen."""
    kept: Choices = st.session_state.setdefault(_KEY, Choices())
    state = st.session_state.get(MAP)
    picked = state.get("picked") if isinstance(state, dict) else None
    if isinstance(picked, list) and len(picked) == 2 and isinstance(picked[0], str) and isinstance(picked[1], int):
        _stand_at(picked[0], max(0, picked[1]))
        return st.session_state[_KEY]
    in_url = {name: st.query_params[name] for name in ("station", "token", "step") if name in st.query_params}
    if in_url and in_url != kept.parameters() and not visit().touched:
        numbers = {name: _number(in_url[name]) for name in ("token", "step") if name in in_url}
        kept = st.session_state[_KEY] = Choices(in_url.get("station", ""), **numbers)
        st.session_state[_MISREAD] = tuple(
            f"The link says {name} “{in_url[name][:30]}”, which is no number of a {name}."
            for name, number in numbers.items()
            if number is None
        )
    return kept


def place(scene: Scene, chosen: Choices) -> tuple[Place, tuple[str, ...]]:
    """Where the visitor stands in this model and sentence, and a sentence for each thing that had to give way."""
    said: list[str] = [*st.session_state.get(_MISREAD, ())]
    chosen = _settled(scene, chosen)
    order = stations(scene.lab.model)
    station = next((s for s in order if str(s) == chosen.station), None)
    if station is None and chosen.station:
        said.append(
            f"There is no station “{chosen.station[:40]}” in {scene.lab.name}; the walk begins at the first one."
        )
    station = station or order[0]
    seen, (token, step) = scene.inspection, followed(scene.inspection)
    token = _existing("token", chosen.token, token, len(seen.source_tokens), said)
    step = _existing("step", chosen.step, step, len(seen.target_tokens), said)
    layer = min(scene.view.layer or 0, n_layers(scene.lab.model, station.stack) - 1)
    return Place(station, order, layer, scene.head, token, step), tuple(said)


def kind_of(place: Place) -> Kind | None:
    """The attention to which the station belongs; None outside of attention."""
    if place.station.block in (None, "ffn"):
        return None
    if place.station.block == "cross":
        return "cross"
    return "encoder_self" if place.station.stack == "encoder" else "decoder_self"


def followed(inspection: Inspection) -> tuple[int, int]:
    """The token and the step that are worth following: the pronoun where there is one, else the middle."""
    step = wording.pronoun_step(inspection)
    it = [i for i, piece in enumerate(inspection.source_tokens) if wording.bare(piece) == "it"]
    return (
        it[0] if it else _middle(inspection.source_tokens),
        _middle(inspection.target_tokens) if step is None else step,
    )


def go_to(scene: Scene, station: Station, layer: int) -> None:
    """Opens a station of a layer, of the last one where its stack is not as high; for callbacks."""
    _stand_at(str(station), min(layer, n_layers(scene.lab.model, station.stack) - 1))


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    st.session_state.pop(_MISREAD, None)
    choose()


def _stand_at(station: str, layer: int) -> None:
    """The layer is counted in the station's own stack, which the kind of attention names."""
    st.session_state[_KEY] = replace(st.session_state[_KEY], station=station)
    st.session_state.pop(_MISREAD, None)
    kind = visit().view.kind
    if station.startswith("encoder"):
        kind = "encoder_self"
    elif station.startswith("decoder.cross"):
        kind = "cross"
    elif station.startswith("decoder.self") or kind == "encoder_self":
        kind = "decoder_self"
    choose(kind=kind, layer=layer)


def _settled(scene: Scene, chosen: Choices) -> Choices:
    """The choices as they fit the sentence on the screen: in another one, other tokens are followed."""
    owner = (scene.view.model, scene.view.text)
    if st.session_state.setdefault(_OWNER, owner) != owner:
        st.session_state[_OWNER] = owner
        chosen = st.session_state[_KEY] = replace(chosen, token=None, step=None)
        visit().own = chosen.parameters()
        write_url()
    return chosen


def _existing(name: str, wanted: int | None, usual: int, length: int, said: list[str]) -> int:
    """The wanted number where there is such a thing; else the usual one, and a sentence."""
    if wanted is None:
        return usual
    if wanted < length:
        return wanted
    said.append(f"There is no {name} {wanted}: there are {name}s 0 to {length - 1}. This is {name} {usual}.")
    return usual


def _middle(tokens: Sequence[str]) -> int:
    return max(0, (len(tokens) - 1) // 2)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else None
