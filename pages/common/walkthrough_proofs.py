"""The checks of the Walkthrough: of the whole map, and of the opened station."""

from collections.abc import Iterable

from pages.common.proofs import badge
from pages.common.scene import Scene
from pages.common.walkthrough_choices import Place, kind_of
from transformer.analysis.proofs import Proof, agree
from transformer.analysis.walkthrough import open_station, prove_stations, prove_unrecorded
from transformer.analysis.whole_pass import WholePass


def prove_map(scene: Scene, walk: WholePass) -> None:
    """Of the drawing: that every equation on it holds, and that recording the pass changed nothing."""
    model = scene.lab.model
    badge(lambda: (prove_stations(model, walk), prove_unrecorded(model, walk)), key="proof-map")


def prove_station(scene: Scene, place: Place, walk: WholePass) -> None:
    """Of a station: its equation; and where it has weights, that the decoding recorded the same."""

    def run() -> Iterable[Proof]:
        station, layer = place.station, place.layer
        found = open_station(scene.lab.model, walk, station, layer)
        how = f"computed again just now, in double precision: {found.proof.how}; largest difference"
        yield Proof(found.proof.claim, found.proof.measured, found.proof.tolerance, how)
        kind = kind_of(place)
        if kind is not None and station.name == "weights" and not (walk.sees_later and station.stack == "decoder"):
            recorded = scene.inspection.attention(kind).weights[layer]
            how = f"{recorded.size:,} weights of all heads against those of the decoding steps"
            claim = "They are the weights that wrote the output"
            yield agree(claim, found.comes_out[0].values, recorded, 1e-5, how)

    badge(run, key="proof-station")
