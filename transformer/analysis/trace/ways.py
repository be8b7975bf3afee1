"""The ways on the map by which numbers come into a step: up from the step before, around a sublayer, across, or from
beside where the model itself holds them."""

from dataclasses import dataclass

from transformer.analysis.trace.opened import OpenedStep
from transformer.analysis.trace.step import Step, Value
from transformer.figures.trace.diagram import Box, Drawing

_OWN = ("row of E", "position", "penalty", "state before", "cell before", "fed")
"""The values that no step below hands on: they belong to the model, or come from the token before."""
_BESIDE = 70.0
"""The pixels from which the model's own numbers come."""
_BELOW = 20.0
"""The pixels below the first step of a layer at which its input enters the layer."""


@dataclass(frozen=True)
class Way:
    """A value that comes into a step, and its path there, y counted from below as in the drawing."""

    value: Value
    points: tuple[tuple[float, float], ...]


def ways_into(drawing: Drawing, step: Step, layer: int, opened: OpenedStep) -> tuple[Way, ...]:
    """Returns the values that come into an opened step of a layer, each on its way on the map that shows it."""
    here = next(box for box in drawing.boxes if box.step == str(step))
    lines = {line.carries: line.points for line in drawing.lines if line.into == str(step)}
    below = _up(drawing, here, step, layer)
    found = []
    for value in _coming(step, layer, opened):
        points = lines.get(value.name)
        if points is None:
            points = _from_beside(here, step) if value.name in _OWN else below
        if points:
            found.append(Way(value, (*points, _middle(here))))
    return tuple(found)


def _coming(step: Step, layer: int, opened: OpenedStep) -> tuple[Value, ...]:
    """Returns what comes in; into the step of all layers, what the layer on the map hands on."""
    return (opened.comes_out[layer],) if step.name == "layers" else opened.comes_in


def _up(drawing: Drawing, here: Box, step: Step, layer: int) -> tuple[tuple[float, float], ...]:
    """Returns the way up from the step before; empty at the first step of a stack."""
    own = [box for box in drawing.boxes if not box.ghost and box.step.startswith(f"{step.stack}.")]
    index = own.index(here)
    if index == 0:
        return ()
    x, _ = _middle(here)
    if layer and step.sublayer is not None and own[index - 1].step.count(".") == 1:  # it comes from the layer before
        return ((x, here.y - _BELOW),)
    return (_middle(own[index - 1]),)


def _from_beside(here: Box, step: Step) -> tuple[tuple[float, float], ...]:
    x, y = _middle(here)
    return ((x + (_BESIDE if step.stack == "encoder" else -_BESIDE), y),)


def _middle(box: Box) -> tuple[float, float]:
    return box.x + box.w / 2, box.y + box.h / 2
