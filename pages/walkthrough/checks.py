"""The checks of the Walkthrough: of the whole map, and of the opened station."""

from collections.abc import Iterable

from pages.shared.checks import badge
from pages.shared.context import PageContext
from pages.walkthrough.choices import Place, kind_of
from transformer.analysis.checks import Check
from transformer.analysis.trace.comparison import (
    check_probabilities_written,
    check_stations,
    check_unrecorded,
    check_weights_written,
    open_station,
)
from transformer.analysis.trace.trace import Trace
from transformer.lab import AttentionKind


def check_map(context: PageContext, walk: Trace) -> None:
    """Of the drawing: that every equation on it holds, that recording the pass changed nothing, and that the pass has
    the numbers that wrote the output."""
    model, seen = context.lab.model, context.inspection

    def run() -> Iterable[Check]:
        yield check_stations(model, walk)
        yield check_unrecorded(model, walk)
        yield check_weights_written(model, walk, seen, tuple(AttentionKind))
        yield check_probabilities_written(model, walk, seen)

    badge(run, key="proof-map")


def check_station(context: PageContext, place: Place, walk: Trace) -> None:
    """Of a station: its equation; and where it has weights or probabilities, that the decoding recorded the same."""

    def run() -> Iterable[Check]:
        model, station, layer = context.lab.model, place.station, place.layer
        found = open_station(model, walk, station, layer)
        how = f"computed again just now, in double precision: {found.check.how}; largest difference"
        yield Check(found.check.claim, found.check.measured, found.check.tolerance, how)
        kind = kind_of(place)
        if kind is not None and station.name == "weights":
            yield check_weights_written(model, walk, context.inspection, [kind], layer)
        if station.name == "probabilities":
            yield check_probabilities_written(model, walk, context.inspection)

    badge(run, key="proof-station")
