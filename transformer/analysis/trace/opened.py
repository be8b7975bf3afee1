"""A recorded forward pass, opened at one step: what came in, what came out, and whether the equation says the same.

Every step is computed again in float64 from what the pass let into it, and compared with what the pass made of it in
float32; what an intervention then did to it is measured separately.
"""

from dataclasses import dataclass

from transformer.analysis.checks import Check
from transformer.analysis.trace.step import Computed, Step, StepRecord, Value
from transformer.analysis.trace.trace import Trace
from transformer.interventions import Intervention

ROUNDING = 1e-5
"""The largest deviation of a value of size 1; larger ones may deviate by proportionally more."""


@dataclass(frozen=True)
class Moved:
    """An intervention that acts at a step, and the largest change of a number there by all interventions together."""

    spec: Intervention
    by: float


@dataclass(frozen=True)
class OpenedStep:
    """One step of one layer in a recorded pass."""

    comes_in: tuple[Value, ...]
    comes_out: tuple[Value, ...]
    moved: tuple[Moved, ...]


def open_step(trace: Trace, step: Step, layer: int = 0) -> OpenedStep:
    """Opens the step of this layer in this pass; ValueError for one that its model lacks."""
    computed = _computed(trace, step, layer)
    return OpenedStep(computed.comes_in, computed.comes_out, _moved(trace, step, layer))


def check_equation(trace: Trace, step: Step, layer: int = 0) -> Check:
    """Checks that the step's equation, in double precision, gives what the pass computed."""
    computed = _computed(trace, step, layer)
    measured = max(float((a.double() - b.double()).abs().max()) for a, b in computed.equal)
    size = max(1.0, *(float(recorded.double().abs().max()) for _, recorded in computed.equal))
    how = f"computed again just now, in double precision: {computed.how}; largest difference"
    return Check("The equation gives what the pass computed", measured, 0.0 if step.exact else ROUNDING * size, how)


def _computed(trace: Trace, step: Step, layer: int) -> Computed:
    if not step.exists:
        raise ValueError(f"this model has no step {step}")
    if step.in_layer and not 0 <= layer < step.n_layers:
        last = step.n_layers - 1
        raise ValueError(f"layer {layer} does not exist: the {step.stack} has layers 0 to {last}")
    return step.compute(StepRecord(step, trace, layer))


def _moved(trace: Trace, step: Step, layer: int) -> tuple[Moved, ...]:
    specs = step.interventions(layer, trace.interventions)
    if not specs:
        return ()
    sites = [site for site in step.sites(layer) if site in trace.taken]
    by = max(float((trace.taken[s].double() - trace.offered[s].double()).abs().max()) for s in sites)
    return tuple(Moved(spec, by) for spec in specs)
