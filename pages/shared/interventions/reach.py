"""Switches that have nothing to act on in the output in sight: a step never reached, a cell closed already. Draws
nothing."""

from transformer.inspection.inspection import Inspection


def idle_notes(seen: Inspection, *, causal_mask: bool) -> tuple[str, ...]:
    """Why a switch, or a part of it, does nothing to this output; `causal_mask`: whether the model has one."""
    looks_back = causal_mask and not any("causal" in spec.lifts for spec in seen.interventions)
    last = len(seen.target_ids) - 1
    said = ((spec, spec.idle(last, looks_back=looks_back)) for spec in seen.interventions)
    return tuple(f"{spec.label()}: {why}" for spec, why in said if why)
