"""A recorded forward pass, opened at one station: what came in, what came out, and whether the equation says the same.

Every station is computed again in float64 from what the pass let into it, and compared with what the pass made of it in
float32; what a switch then did to it is measured apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Shaped
from numpy import ndarray
from torch import Tensor

from transformer.analysis.checks import Check, agree
from transformer.analysis.trace.parts import At, Axis, Value
from transformer.analysis.trace.source import Snippet, snippets_of
from transformer.analysis.trace.steps import Station, n_layers, sites_of, stations, switches_at
from transformer.analysis.trace.sums import sum_of
from transformer.analysis.trace.trace import Trace
from transformer.decoding.greedy import Constraints, greedy
from transformer.inspection.inspection import AttentionKind, Inspection
from transformer.interventions import Intervention, compile_interventions
from transformer.model.taps import Recording, Site
from transformer.model.transformer import Transformer

EXACT = frozenset({"ids", "masked", "layers"})
"""Stations whose numbers are looked up or carried over and not rounded."""
ROUNDING = 1e-5
"""Of a value of size 1; larger ones may deviate by as much more."""
WRITTEN = 1e-6
"""Of a probability in a step's own pass and in the decoding; where decoding used a cache, it rounds as elsewhere."""


@dataclass(frozen=True)
class Shown:
    """A named array [row column] or [head row column], with what its rows and columns are."""

    name: str
    values: Shaped[ndarray, "*head row column"]
    rows: Axis
    columns: Axis
    recorded: bool
    """False where it was computed from recorded arrays, because the pass keeps no such array."""
    allowed: Bool[ndarray, "row column"] | None
    """False where a mask forbids the cell."""
    every_row: bool
    """Whether all rows take part in one row of the result, as keys and values do."""
    before: Shaped[ndarray, "*head row column"] | None
    """What the model computed, where a switch put other values in its place."""


@dataclass(frozen=True)
class Switched:
    """A switch that acts at a station, and the largest change of a number there by all switches together."""

    spec: Intervention
    moved: float


@dataclass(frozen=True)
class Opened:
    """One station of one layer in a recorded pass."""

    station: Station
    layer: int
    comes_in: tuple[Shown, ...]
    comes_out: tuple[Shown, ...]
    check: Check
    switched: tuple[Switched, ...]
    snippets: tuple[Snippet, ...]
    """The lines of this project that computed it."""


def open_station(model: Transformer, walk: Trace, station: Station, layer: int = 0) -> Opened:
    """The station of this layer in this pass; ValueError for one that the model has not."""
    if station not in stations(model):
        raise ValueError(f"this model has no station {station}")
    if station.in_layer and not 0 <= layer < n_layers(model, station.stack):
        last = n_layers(model, station.stack) - 1
        raise ValueError(f"layer {layer} does not exist: the {station.stack} has layers 0 to {last}")
    found = sum_of(At(model, walk, station, layer))
    return Opened(
        station=station,
        layer=layer,
        comes_in=tuple(_shown(value, None) for value in found.comes_in),
        comes_out=tuple(_shown(value, _before(walk, value)) for value in found.comes_out),
        check=Check(
            "The equation gives what the pass computed",
            *_deviation(found.equal, exact=station.name in EXACT),
            found.how,
        ),
        switched=_switched(model, walk, station, layer),
        snippets=snippets_of(station, model),
    )


def check_stations(model: Transformer, walk: Trace) -> Check:
    """That every equation of the pass holds, in every layer."""
    places = [
        (station, layer)
        for station in stations(model)
        for layer in range(n_layers(model, station.stack) if station.in_layer and station.name != "layers" else 1)
    ]
    failing = [place for place in places if not open_station(model, walk, *place).check.holds]
    where = "" if not failing else f", the first at {failing[0][0]} of layer {failing[0][1]}"
    how = f"{len(places)} stations of all layers computed again in double precision; how many differ{where}"
    return Check("Every station's equation gives what the pass computed", float(len(failing)), 0.0, how)


@torch.no_grad()
def check_unrecorded(model: Transformer, walk: Trace) -> Check:
    """That the pass ends in the same logits with nothing recorded."""
    tap = compile_interventions(walk.switches, model)
    again = model(torch.tensor([walk.source]), torch.tensor([walk.inputs]), tap=tap)[0].numpy()
    logits = walk.taken[Site("decoder", None, None, "logits")].numpy()
    size = max(1.0, float(abs(logits).max()))
    how = f"the pass run again with nothing recorded, {logits.size:,} logits"
    return agree("Recording does not change the pass", logits, again, ROUNDING * 10 * size, how)


def check_weights_written(
    model: Transformer, walk: Trace, seen: Inspection, kinds: Sequence[AttentionKind], layer: int | None = None
) -> Check:
    """That the weights of a layer (None: of all) in this pass are those that wrote the inspection's output."""
    n_of = {kind: len(seen.attention(kind).weights) for kind in kinds}
    places: list[tuple[AttentionKind, int]] = [
        (kind, at) for kind in kinds for at in (range(n_of[kind]) if layer is None else [layer])
    ]
    lost = walk.sees_later and "decoder_self" in kinds and walk.last + 1 < len(seen.target_ids)
    again = _own_pass_again(model, walk, seen) if lost else {}
    shown, recorded = [], []
    for kind, at in places:
        stack, sublayer = kind.where
        site = Site(stack, at, sublayer, "weights")
        mine, theirs = walk.taken[site].numpy(), seen.attention(kind).weights[at]
        if walk.sees_later and kind == "cross":
            mine, theirs = mine[:, -1], theirs[:, walk.last]
        elif site in again:
            theirs = again[site].numpy()[0]
        shown.append(mine.ravel())
        recorded.append(theirs.ravel())
    return agree(
        "They are the weights that wrote the output",
        np.concatenate(shown),
        np.concatenate(recorded),
        ROUNDING,
        f"{sum(map(len, shown)):,} weights of all heads against those of {_decoding(walk, rerun=lost)}",
    )


def check_probabilities_written(model: Transformer, walk: Trace, seen: Inspection) -> Check:
    """That this pass gives the written tokens the probabilities with which the inspection's decoding wrote them."""
    first = walk.last if walk.sees_later else 0
    rows = np.arange(first, walk.last + 1)
    (shown,) = open_station(model, walk, Station("decoder", None, "probabilities")).comes_out
    written = shown.values[rows, np.array(seen.target_ids)[rows]]
    how = f"those of the tokens written, {len(rows):,} in all, against those of {_decoding(walk)}"
    tolerance = WRITTEN if walk.sees_later else ROUNDING
    return agree("They are the probabilities that wrote the output", written, seen.probabilities[rows], tolerance, how)


def _decoding(walk: Trace, *, rerun: bool = False) -> str:
    if not walk.sees_later:
        return "the decoding steps"
    return f"step {walk.last} of the decoding" + ", run again for its self-attention" * rerun


def _own_pass_again(model: Transformer, walk: Trace, seen: Inspection) -> Recording:
    """The decoder's self-attention of the walk's step in the decoding, run again: an inspection keeps the last pass."""
    steps = greedy(
        model,
        torch.tensor([seen.source_ids]),
        max_length=model.config.max_length,
        constraints=Constraints(forced=dict(seen.forced)),
        tap=compile_interventions(seen.interventions, model),
        record=lambda site: (site.stack, site.sublayer, site.tensor) == ("decoder", "self", "weights"),
    )
    step = next(islice(steps, walk.last, None))
    assert step.recording is not None, "these steps record"
    return step.recording


def _deviation(equal: Sequence[tuple[Tensor, Tensor]], *, exact: bool) -> tuple[float, float]:
    """The largest difference, and the largest that rounding explains: it grows with the numbers."""
    measured = max(float((a.double() - b.double()).abs().max()) for a, b in equal)
    size = max(1.0, *(float(b.double().abs().max()) for _, b in equal))
    return measured, 0.0 if exact else ROUNDING * size


def _switched(model: Transformer, walk: Trace, station: Station, layer: int) -> tuple[Switched, ...]:
    specs = switches_at(station, layer, walk.switches, model)
    if not specs:
        return ()
    sites = [site for site in sites_of(station, layer, model) if site in walk.taken]
    moved = max(float((walk.taken[s].double() - walk.offered[s].double()).abs().max()) for s in sites)
    return tuple(Switched(spec, moved) for spec in specs)


def _before(walk: Trace, value: Value) -> Tensor | None:
    """What the model offered at the site whose tensor this is, where the pass went on with another one."""
    offered = next((walk.offered[site] for site, taken in walk.taken.items() if taken is value.tensor), None)
    return None if offered is None or torch.equal(offered, value.tensor) else offered


def _shown(value: Value, before: Tensor | None) -> Shown:
    return Shown(
        value.name,
        _read_only(value.tensor),
        value.rows,
        value.columns,
        value.recorded,
        None if value.allowed is None else _read_only(value.allowed),
        value.every_row,
        None if before is None else _read_only(before),
    )


def _read_only(tensor: Tensor) -> ndarray:
    array = tensor.detach().numpy()
    array.setflags(write=False)
    return array
