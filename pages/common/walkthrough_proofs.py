"""The checks of the Walkthrough: of the whole map, and of the opened station."""

from collections.abc import Iterable

from pages.common.proofs import badge
from pages.common.scene import Scene
from pages.common.walkthrough_choices import Place, kind_of
from transformer.analysis.proofs import Proof
from transformer.analysis.walkthrough import (
    open_station,
    prove_probabilities_written,
    prove_stations,
    prove_unrecorded,
    prove_weights_written,
)
from transformer.analysis.whole_pass import WholePass
from transformer.lab import KIND_SITES


def prove_map(scene: Scene, walk: WholePass) -> None:
    """Of the drawing: that every equation on it holds, that recording the pass changed nothing, and that the pass has
    the numbers that wrote the output."""
    model, seen = scene.lab.model, scene.inspection

    def run() -> Iterable[Proof]:
        yield prove_stations(model, walk)
        yield prove_unrecorded(model, walk)
        yield prove_weights_written(model, walk, seen, tuple(KIND_SITES))
        yield prove_probabilities_written(model, walk, seen)

    badge(run, key="proof-map")


def prove_station(scene: Scene, place: Place, walk: WholePass) -> None:
    """Of a station: its equation; and where it has weights or probabilities, that the decoding recorded the same."""

    def run() -> Iterable[Proof]:
        model, station, layer = scene.lab.model, place.station, place.layer
        found = open_station(model, walk, station, layer)
        how = f"computed again just now, in double precision: {found.proof.how}; largest difference"
        yield Proof(found.proof.claim, found.proof.measured, found.proof.tolerance, how)
        kind = kind_of(place)
        if kind is not None and station.name == "weights":
            yield prove_weights_written(model, walk, scene.inspection, [kind], layer)
        if station.name == "probabilities":
            yield prove_probabilities_written(model, walk, scene.inspection)

    badge(run, key="proof-station")
