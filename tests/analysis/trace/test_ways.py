"""The ways of numbers on the map: every value that comes into a step has one, and it ends at the step."""

import pytest

from transformer.analysis.trace.diagram import draw_map
from transformer.analysis.trace.opened import open_step
from transformer.analysis.trace.steps import find_step, steps
from transformer.analysis.trace.ways import ways_into
from transformer.lab import load


@pytest.fixture(scope="module")
def lab():
    return load("pronouns-en-fr")


@pytest.fixture(scope="module")
def trace(lab):
    return lab.trace(lab.inspect("The animal did not cross the street because it was too tired."))


def ways(lab, trace, name, layer=0):
    step = find_step(lab.model, name)
    drawing = draw_map(lab.model, step, layer)
    return drawing, ways_into(drawing, step, layer, open_step(trace, step, layer))


@pytest.mark.parametrize("layer", [0, 1])
def test_each_value_that_comes_in_has_a_way_that_ends_at_the_step(lab, trace, layer):
    for step in steps(lab.model):
        if step.name == "ids":
            continue
        drawing, found = ways(lab, trace, str(step), layer)
        opened = open_step(trace, step, layer)
        expected = [f"after layer {layer}"] if step.name == "layers" else [value.name for value in opened.comes_in]
        assert [way.value.name for way in found] == expected, step
        box = next(box for box in drawing.boxes if box.step == str(step))
        for way in found:
            (*_, (x, y)) = way.points
            assert len(way.points) >= 2 and (x, y) == (box.x + box.w / 2, box.y + box.h / 2)


def test_nothing_comes_into_the_first_step(lab, trace):
    assert ways(lab, trace, "encoder.ids")[1] == () == ways(lab, trace, "decoder.ids")[1]


def test_memory_crosses_from_the_encoder_and_the_residual_goes_around(lab, trace):
    drawing, (x, memory) = ways(lab, trace, "decoder.cross.qkv")
    assert x.points[0][0] == x.points[-1][0] and x.points[0][1] < x.points[-1][1]  # straight up
    assert memory.points[0][0] < x.points[0][0] and len(memory.points) == 6
    assert any(memory.points[:-1] == line.points for line in drawing.lines)
    _, (residual, sublayer) = ways(lab, trace, "encoder.ffn.add")
    assert len(residual.points) == 5 and len(sublayer.points) == 2


def test_values_go_around_the_steps_that_weigh_them(lab, trace):
    _, (weights, values) = ways(lab, trace, "encoder.self.context")
    assert (len(weights.points), len(values.points)) == (2, 5)
