"""Switches that have nothing to act on in the output in sight: a step never reached, a cell closed already. Draws
nothing."""

from pages.common import switch_names
from transformer.inspection import Inspection
from transformer.interventions import CellOff, Copied, Intervention, MaskOff, PositionsChanged, RowSet


def idle_notes(seen: Inspection, *, causal_mask: bool) -> tuple[str, ...]:
    """Why a switch, or a part of it, does nothing to this output; `causal_mask`: whether the model has one."""
    looks_back = causal_mask and MaskOff("causal") not in seen.interventions
    last = len(seen.target_ids) - 1
    said = ((spec, _why(spec, last, looks_back)) for spec in seen.interventions)
    return tuple(f"{switch_names.switch_label(spec)}: {why}" for spec, why in said if why)


def _why(spec: Intervention, last: int, looks_back: bool) -> str:
    late = sorted(step for step in _steps(spec) if step > last)
    if late and not (looks_back and _is_closed(spec) and spec.query <= last):  # type: ignore[union-attr]
        steps = f"step{'s' * (len(late) > 1)} {', '.join(map(str, late))}"
        there = f"has steps 0 to {last}" if last else "has only step 0"
        return f"nothing happens at {steps}, which this output never reaches: it {there}."
    if looks_back and _is_closed(spec):
        return "that cell is closed already: the key comes after the query, and the causal mask hides it."
    if looks_back and isinstance(spec, RowSet) and (spec.stack, spec.block, spec.query) == ("decoder", "self", 0):
        return "row 0 has a single key, so its weight is 1 whatever is asked."
    return ""


def _is_closed(spec: Intervention) -> bool:
    """Whether a causal mask closes the cell that the switch is to close."""
    return isinstance(spec, CellOff) and (spec.stack, spec.block) == ("decoder", "self") and spec.key > spec.query


def _steps(spec: Intervention) -> set[int]:
    """The steps of the output that a switch names."""
    match spec:
        case CellOff(stack="decoder", block="self"):
            return {spec.query, spec.key}
        case RowSet(stack="decoder", block="self"):
            return {spec.query, *([spec.to] if isinstance(spec.to, int) else [])}
        case CellOff(stack="decoder") | RowSet(stack="decoder"):
            return {spec.query}
        case PositionsChanged(stack="decoder", edit="same"):
            return set(spec.tokens)
        case Copied() if not spec.over_source:
            return {here for _, here in spec.positions}
    return set()
