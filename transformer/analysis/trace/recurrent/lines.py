"""The lines on the map of a recurrent model that go around other steps, or from one column to the other."""

from collections.abc import Iterator

from transformer.figures.trace.diagram import WIDTH, Box, Drawing, Line
from transformer.model.kinds import KindName
from transformer.model.recurrent import RecurrentModel
from transformer.model.taps import Stack

_LANES = (426.0, 431.0, 436.0)
"""The places of the lines that go around steps of the decoder, on its right."""
_CHANNELS = (WIDTH / 2 + 8, WIDTH / 2 - 8)
"""The places of the lines between the columns: the states that attention asks, and the decoder's start."""


def recurrent_title(model: RecurrentModel, stack: Stack, sublayer: str) -> str:
    """Returns the name of a block on the map."""
    config = model.config
    if sublayer == "cross":
        return f"{config.attention.capitalize()} attention"
    both_ways = stack == "encoder" and config.bidirectional
    return f"{config.cell.upper()}, both ways" if both_ways else config.cell.upper()


def recurrent_lines(model: RecurrentModel, drawing: Drawing) -> Iterator[Line]:
    """Yields the lines that leave the way up."""
    unit, start = _box(drawing, "decoder.recurrent.gates"), _box(drawing, "decoder.start")
    vector = _box(drawing, "encoder.vector")
    yield Line(((_middle(vector), _top(vector)), (_middle(start), start.y)), into="decoder.start", carries="vector")
    yield _across((_middle(start), _top(start)), unit, _CHANNELS[1])
    kind = model.config.attention
    if kind == "none":
        return
    asks, context = _box(drawing, "decoder.cross.qkv"), _box(drawing, "decoder.cross.context")
    state, combine = _box(drawing, "decoder.recurrent.state"), _box(drawing, "decoder.combine")
    below = (_middle(vector), vector.y - 7)
    yield _across(below, asks, _CHANNELS[0], into="decoder.cross.qkv", carries="states", kind="cross")
    if kind == "additive":
        embedding = _box(drawing, "decoder.embedding")
        yield _around(state, asks, _LANES[1], "decoder.cross.qkv", "state before")
        yield _around(embedding, unit, _LANES[0], "decoder.recurrent.gates", "x")
        yield _around(embedding, combine, _LANES[2], "decoder.combine", "x")
        yield _around(context, combine, _LANES[0], "decoder.combine", "context", "cross")
        return
    yield _around(state, combine, _LANES[0], "decoder.combine", "state")
    if model.config.input_feeding:
        yield _around(combine, unit, _LANES[2], "decoder.recurrent.gates", "fed")


def _box(drawing: Drawing, step: str) -> Box:
    """Returns the box of a step, or of the folded block that holds it."""
    for box in drawing.boxes:
        if box.step == step or (box.folded and box.step.rpartition(".")[0] == step.rpartition(".")[0]):
            return box
    raise ValueError(f"the map has no step {step}")


def _around(start: Box, end: Box, lane: float, into: str, carries: str, kind: KindName | None = None) -> Line:
    """Draws a line on the right of the decoder, from the upper half of one box to the lower half of another."""
    y0, y1 = start.y + 0.7 * start.h, end.y + 0.3 * end.h
    points = ((start.x + start.w, y0), (lane, y0), (lane, y1), (end.x + end.w, y1))
    return Line(points, kind, into=into, carries=carries)


def _across(
    start: tuple[float, float],
    end: Box,
    channel: float,
    into: str = "",
    carries: str = "",
    kind: KindName | None = None,
) -> Line:
    """Draws a line from a point of the encoder to the left side of a box of the decoder."""
    (x, y), y1 = start, end.y + end.h / 2
    up = y if kind else y + 12
    return Line(((x, y), (x, up), (channel, up), (channel, y1), (end.x, y1)), kind, into=into, carries=carries)


def _middle(box: Box) -> float:
    return box.x + box.w / 2


def _top(box: Box) -> float:
    return box.y + box.h
