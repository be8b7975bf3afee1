"""What is chosen on the Walkthrough alone: the station and the tokens that are followed; in the URL too.

Layer and head are the visitor's on every page.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.shared import wording
from pages.shared.controls import PageContext
from pages.shared.url.page_state import PageState
from pages.shared.url.session import choose, session
from pages.shared.url.url_state import UrlState, param, text, whole
from transformer.analysis.trace.steps import Station, n_layers, stations
from transformer.lab import Inspection
from transformer.model.kinds import AttentionKind

MAP = "walkthrough-map"
"""Key of the drawing whose stations can be clicked."""
_LONGEST_STATION = 1_000
"""Characters of a name that is no station's; they are cut where they are told."""


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """Where the visitor stands. Empty and None mean "what suits best"."""

    station: str = param(
        "",
        text(_LONGEST_STATION),
        offered=lambda _, context: [str(station) for station in stations(context.lab.model)],
        usual=lambda _, context: str(stations(context.lab.model)[0]),
        absent="There is no station “{value}” in {context.lab.name}; the walk begins at the first one.",
    )
    """As a station prints: encoder.self.weights."""
    token: int | None = param(
        None,
        whole(0, 9_999),
        offered=lambda _, context: range(len(context.inspection.source_tokens)),
        usual=lambda _, context: followed(context.inspection)[0],
        resets=("model", "text"),
    )
    """The source token that is followed through the encoder."""
    step: int | None = param(
        None,
        whole(0, 9_999),
        offered=lambda _, context: range(len(context.inspection.target_tokens)),
        usual=lambda _, context: followed(context.inspection)[1],
        resets=("model", "text"),
    )
    """The step, hence the decoder's token, that is followed through the decoder."""


PAGE = PageState(Choices, key="walkthrough-page")


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
    state = st.session_state.get(MAP)
    picked = state.get("picked") if isinstance(state, dict) else None
    if isinstance(picked, list) and len(picked) == 2 and isinstance(picked[0], str) and isinstance(picked[1], int):
        _stand_at(picked[0], max(0, picked[1]))
    return PAGE.follow_url()


def place(context: PageContext) -> tuple[Place, tuple[str, ...]]:
    """Where the visitor stands in this model and sentence, and a sentence for each thing that had to give way."""
    chosen, problems = PAGE.settle(context.view).fit(context)
    assert chosen.token is not None and chosen.step is not None
    order = stations(context.lab.model)
    station = next(station for station in order if str(station) == chosen.station)
    layer = min(context.view.layer or 0, n_layers(context.lab.model, station.stack) - 1)
    said = (*PAGE.said(), *(problem.sentence for problem in problems))
    return Place(station, order, layer, context.head, chosen.token, chosen.step), said


def kind_of(place: Place) -> AttentionKind | None:
    """The attention to which the station belongs; None outside of attention."""
    if place.station.sublayer in (None, "ffn"):
        return None
    return AttentionKind.at(place.station.stack, place.station.sublayer)


def followed(inspection: Inspection) -> tuple[int, int]:
    """The token and the step that are worth following: the pronoun where there is one, else the middle."""
    step = wording.pronoun_step(inspection)
    it = [i for i, piece in enumerate(inspection.source_tokens) if wording.bare(piece) == "it"]
    return (
        it[0] if it else _middle(inspection.source_tokens),
        _middle(inspection.target_tokens) if step is None else step,
    )


def go_to(context: PageContext, station: Station, layer: int) -> None:
    """Opens a station of a layer, of the last one where its stack is not as high; for callbacks."""
    _stand_at(str(station), min(layer, n_layers(context.lab.model, station.stack) - 1))


def _stand_at(station: str, layer: int) -> None:
    """The layer is counted in the station's own stack, which the kind of attention names."""
    PAGE.change(station=station)
    kind = session().view.kind
    if station.startswith("encoder"):
        kind = "encoder_self"
    elif station.startswith("decoder.cross"):
        kind = "cross"
    elif station.startswith("decoder.self") or kind == "encoder_self":
        kind = "decoder_self"
    choose(kind=kind, layer=layer)


def _middle(tokens: Sequence[str]) -> int:
    return max(0, (len(tokens) - 1) // 2)
