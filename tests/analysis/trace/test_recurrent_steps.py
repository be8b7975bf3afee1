"""The steps of recurrent models of every kind: each computed again, each with its words and its place on the map."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import RECURRENT_BUILDS, random_ids, random_recurrent

from transformer.analysis.attention.recurrent_reference import pass_from_ids
from transformer.analysis.trace.checks import check_opened, check_steps, check_unrecorded, precise_trace
from transformer.analysis.trace.diagram import draw_map, map_arrays
from transformer.analysis.trace.opened import check_equation, open_step
from transformer.analysis.trace.overview import stages
from transformer.analysis.trace.source import MAX_LINES
from transformer.analysis.trace.steps import find_step, steps
from transformer.analysis.trace.trace import record_trace
from transformer.analysis.trace.ways import ways_into
from transformer.decoding.greedy import greedy
from transformer.figures.trace.diagram import WIDTH
from transformer.interventions import AblateHeads, AblateSublayer, MaskEntry, compile_interventions

BUILDS = [
    dict(build, bidirectional=i % 2 == 0, n_encoder_layers=1 + i % 2, n_decoder_layers=1 + 2 * (i % 3 == 0))
    for i, build in enumerate(RECURRENT_BUILDS)
]
"""Every kind of cell with every way to ask, in turn both ways or one, with one layer or several."""


def traced(model, switches=()):
    """The recorded pass of a sentence that the model decoded under these switches."""
    source = random_ids(1, 6)
    source[0, -1] = model.config.eos_id
    decoding = list(greedy(model, source, max_length=5, tap=compile_interventions(switches, model)))
    return record_trace(
        model,
        source[0].tolist(),
        [int(step.tokens[0]) for step in decoding],
        switches,
        log_probs=torch.cat([step.log_probs for step in decoding]).numpy(),
        source_again=source[0].tolist(),
    )


def places(model):
    """Every step of every layer."""
    return [(step, layer) for step in steps(model) for layer in range(step.n_layers)]


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_every_step_gives_what_the_pass_computed_and_shows_what_it_has_in_double_precision(build):
    model = random_recurrent(**build)
    trace = traced(model)
    precise = precise_trace(model, trace)
    for step, layer in places(model):
        opened = open_step(trace, step, layer)
        assert opened.comes_out and not opened.moved
        for shown in (*opened.comes_in, *opened.comes_out):
            assert shown.values.ndim in (2, 3) and np.isfinite(shown.values).all()
        assert [c for c in check_opened(trace, precise, step, layer, opened) if not c.holds] == [], (str(step), layer)
    assert check_unrecorded(model, trace).holds


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_the_pass_is_the_whole_model_computed_from_the_ids_alone(build):
    trace = traced(model := random_recurrent(**build))
    weights, logits = pass_from_ids(model, trace.source, trace.inputs)
    shown = {str(step): open_step(trace, step).comes_out for step in steps(model)}
    assert np.abs(shown["decoder.logits"][0].values - logits).max() < 1e-4
    if model.attention is not None:
        assert np.abs(shown["decoder.cross.weights"][0].values - weights[0]).max() < 1e-5


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_a_number_that_was_changed_is_noticed_at_the_step_that_computes_it(build):
    model = random_recurrent(**build)
    trace = traced(model)
    for site, tensor in trace.offered.items():
        spoilt = ~tensor if tensor.dtype == torch.bool else tensor + 0.01
        other = replace(trace, offered={**trace.offered, site: spoilt})
        (own,) = (s for s in steps(model) if site in s.sites(site.layer or 0))
        assert not check_equation(other, own, site.layer or 0).holds, f"nobody noticed {site}"


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_every_step_has_words_source_lines_a_place_on_the_map_and_ways_to_it(build):
    model = random_recurrent(**build)
    trace, order = traced(model), steps(model)
    for step, layer in places(model):
        words = step.words()
        assert words.title and words.says and words.equation.count("{") == words.equation.count("}") and words.paper
        for snippet in step.source:
            assert 1 <= snippet.text.count("\n") + 1 <= MAX_LINES, (step, snippet)
        drawing = draw_map(model, step, layer)
        (box,) = (box for box in drawing.boxes if box.chosen)
        assert box.step == str(step)
        assert all(0 <= b.x and b.x + b.w <= WIDTH and 0 <= b.y <= drawing.height for b in drawing.boxes)
        assert {b.step for b in drawing.boxes if b.step} <= set(map(str, order))
        assert map_arrays(model, trace, drawing, layer)
        if step.name in ("ids", "layers"):
            continue
        opened = open_step(trace, step, layer)
        assert [w.value.name for w in ways_into(drawing, step, layer, opened)] == [v.name for v in opened.comes_in], (
            step
        )


def test_switches_are_followed_and_measured():
    model = random_recurrent(attention="additive")
    switches = (MaskEntry("decoder", 0, "cross", 1, 2),)
    trace = traced(model, switches)
    assert check_steps(model, trace).holds
    (masked,) = open_step(trace, find_step(model, "decoder.cross.masked")).comes_out
    assert not masked.allowed[1, 2] and masked.allowed.sum() == masked.allowed.size - 1
    off = traced(model, (AblateHeads("decoder", 0, "cross", (0,)),))
    (moved,) = open_step(off, find_step(model, "decoder.cross.context")).moved
    assert moved.by > 0 and check_steps(model, off).holds
    block = traced(model, (AblateSublayer("decoder", 0, "cross"),))
    assert [v.name for v in open_step(block, find_step(model, "decoder.cross.context")).comes_out][-1] == "handed on"
    assert check_steps(model, block).holds


def test_without_attention_one_vector_is_all_that_crosses():
    model = random_recurrent(attention="none")
    names = [str(step) for step in steps(model)]
    assert not any("cross" in name or "combine" in name for name in names)
    assert names.index("encoder.vector") + 1 == names.index("decoder.start")
    assert "all that the decoder ever gets" in find_step(model, "encoder.vector").words().says
    (vector,) = open_step(traced(model), find_step(model, "encoder.vector")).comes_out
    assert (vector.rows, vector.values.shape) == ("one", (1, model.config.d_model))


def test_who_asks_depends_on_the_order_of_the_paper():
    def order(kind):
        return [step.sublayer for step in steps(random_recurrent(attention=kind)) if step.stack == "decoder"]

    bahdanau, luong = order("additive"), order("dot")
    assert bahdanau.index("cross") < bahdanau.index("recurrent")
    assert luong.index("recurrent") < luong.index("cross")


def test_the_overview_has_a_row_for_each_layer_and_the_attention_between():
    model = random_recurrent(attention="general", n_decoder_layers=2)
    trace = traced(model)
    names = [stage.name for stage in stages(model, trace, "decoder")]
    assert names == ["embedding", "0 · LSTM", "1 · LSTM", "context", "combined"]
    assert [stage.name for stage in stages(model, trace, "encoder")] == ["embedding", "0 · LSTM"]
