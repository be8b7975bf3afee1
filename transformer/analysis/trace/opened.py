"""A recorded forward pass, opened at one step: what came in, what came out, and whether the equation says the same.

Every step is computed again in float64 from what the pass let into it, and compared with what the pass made of it in
float32; what an intervention then did to it is measured separately.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Shaped
from numpy import ndarray
from torch import Tensor

from transformer.analysis.checks import Check
from transformer.analysis.trace.step import Axis, Computed, Step, StepRecord, Value, n_layers
from transformer.analysis.trace.steps import steps
from transformer.analysis.trace.trace import Trace
from transformer.interventions import Intervention
from transformer.model.transformer import Transformer

ROUNDING = 1e-5
"""Of a value of size 1; larger ones may deviate by proportionally more."""


@dataclass(frozen=True)
class Shown:
    """A named array [row column] or [head row column], and what its rows and columns are."""

    name: str
    values: Shaped[ndarray, "*head row column"]
    rows: Axis
    columns: Axis
    recorded: bool
    """False where it was computed from recorded arrays, because the pass keeps no such array."""
    allowed: Bool[ndarray, "row column"] | None
    """False where a mask hides the entry."""
    every_row: bool
    """Whether all rows take part in one row of the result, as keys and values do."""
    before: Shaped[ndarray, "*head row column"] | None
    """What the model computed, where an intervention put other values in its place."""


@dataclass(frozen=True)
class Moved:
    """An intervention that acts at a step, and the largest change of a number there by all interventions together."""

    spec: Intervention
    by: float


@dataclass(frozen=True)
class OpenedStep:
    """One step of one layer in a recorded pass."""

    comes_in: tuple[Shown, ...]
    comes_out: tuple[Shown, ...]
    moved: tuple[Moved, ...]


def open_step(model: Transformer, trace: Trace, step: Step, layer: int = 0) -> OpenedStep:
    """Opens the step of this layer in this pass; ValueError for one that the model lacks."""
    computed = _computed(model, trace, step, layer)
    return OpenedStep(
        comes_in=tuple(_shown(value, None) for value in computed.comes_in),
        comes_out=tuple(_shown(value, _before(trace, value)) for value in computed.comes_out),
        moved=_moved(model, trace, step, layer),
    )


def check_equation(model: Transformer, trace: Trace, step: Step, layer: int = 0) -> Check:
    """Checks that the step's equation, in double precision, gives what the pass computed."""
    computed = _computed(model, trace, step, layer)
    how = f"computed again just now, in double precision: {computed.how}; largest difference"
    return Check("The equation gives what the pass computed", *_deviation(computed.equal, exact=step.exact), how)


def _computed(model: Transformer, trace: Trace, step: Step, layer: int) -> Computed:
    if step not in steps(model):
        raise ValueError(f"this model has no step {step}")
    if step.in_layer and not 0 <= layer < n_layers(model, step.stack):
        last = n_layers(model, step.stack) - 1
        raise ValueError(f"layer {layer} does not exist: the {step.stack} has layers 0 to {last}")
    return step.compute(StepRecord(model, trace, step, layer))


def _deviation(equal: Sequence[tuple[Tensor, Tensor]], *, exact: bool) -> tuple[float, float]:
    """The largest difference, and the largest that rounding explains: it grows with the numbers."""
    measured = max(float((a.double() - b.double()).abs().max()) for a, b in equal)
    size = max(1.0, *(float(b.double().abs().max()) for _, b in equal))
    return measured, 0.0 if exact else ROUNDING * size


def _moved(model: Transformer, trace: Trace, step: Step, layer: int) -> tuple[Moved, ...]:
    specs = step.interventions(model, layer, trace.interventions)
    if not specs:
        return ()
    sites = [site for site in step.sites(model, layer) if site in trace.taken]
    by = max(float((trace.taken[s].double() - trace.offered[s].double()).abs().max()) for s in sites)
    return tuple(Moved(spec, by) for spec in specs)


def _before(trace: Trace, value: Value) -> Tensor | None:
    """What the model computed at the site whose tensor this is, where the pass went on with another one."""
    offered = next((trace.offered[site] for site, taken in trace.taken.items() if taken is value.tensor), None)
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
