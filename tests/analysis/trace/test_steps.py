"""The steps of a forward pass through models of every kind, each computed again from what it let in."""

import ast
import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import random_ids, random_model

from transformer.analysis.trace import reference
from transformer.analysis.trace.checks import check_opened, precise_trace
from transformer.analysis.trace.opened import check_equation, open_step
from transformer.analysis.trace.source import MAX_LINES, lines_of
from transformer.analysis.trace.stack_steps import FinalNorm
from transformer.analysis.trace.step import n_layers
from transformer.analysis.trace.steps import find_step, missing_steps, steps
from transformer.analysis.trace.trace import record_trace
from transformer.decoding.greedy import greedy
from transformer.interventions import (
    AblateHeads,
    AblateResidual,
    AblateSublayer,
    DisableMask,
    EditPositions,
    MaskEntry,
    PatchActivation,
    SetAttentionRow,
    compile_interventions,
)
from transformer.model.taps import Site

KINDS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "without norm": {"norm": "none"},
    "without residuals": {"residual": False},
    "without residuals, pre-norm": {"residual": False, "norm": "pre"},
    "bare": {"residual": False, "norm": "none", "scale_scores": False, "causal_mask": False, "positions": "none"},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "alibi, unscaled": {"positions": "alibi", "scale_scores": False},
    "unscaled": {"scale_scores": False},
    "additive": {"score": "additive"},
    "additive, alibi": {"score": "additive", "positions": "alibi"},
    "multiplicative": {"score": "multiplicative"},
    "multiplicative, alibi, unscaled": {"score": "multiplicative", "positions": "alibi", "scale_scores": False},
    "gelu, untied": {"activation": "gelu", "tie_embeddings": False, "tie_output": False, "output_bias": True},
    "one layer": {"n_encoder_layers": 1, "n_decoder_layers": 1},
}
SOURCE = 6


def traced(model, switches=()):
    """The recorded pass of a sentence that the model decoded under these switches."""
    source = random_ids(1, SOURCE)
    source[0, -1] = model.config.eos_id
    tap = compile_interventions(switches, model)
    decoding = list(greedy(model, source, max_length=5, tap=tap))
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
    return [
        (step, layer) for step in steps(model) for layer in range(n_layers(model, step.stack) if step.in_layer else 1)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_steps_equation_gives_what_the_pass_computed(kind):
    model = random_model(**KINDS[kind])
    trace = traced(model)
    for step, layer in places(model):
        found, check = open_step(trace, step, layer), check_equation(trace, step, layer)
        assert check.holds, (str(step), layer, check)
        assert check.tolerance == 0 or not step.exact
        assert found.comes_out and not found.moved
        for shown in (*found.comes_in, *found.comes_out):
            assert shown.values.ndim in (2, 3) and np.isfinite(shown.values).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_step_shows_is_what_the_same_pass_has_in_double_precision(kind):
    model = random_model(**KINDS[kind])
    trace = traced(model)
    precise = precise_trace(model, trace)
    for step, layer in places(model):
        checks = list(check_opened(trace, precise, step, layer, open_step(trace, step, layer)))
        assert [check for check in checks if not check.holds] == [], str(step)


def test_the_reference_calls_none_of_the_models_code():
    tree = ast.parse(Path(inspect.getsourcefile(reference)).read_text())
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert set(imported) == {"typing", "torch"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_was_changed_is_noticed_at_the_step_that_computes_it(kind):
    model = random_model(**KINDS[kind], d_ff=8)
    trace = traced(model)
    for site, tensor in trace.offered.items():
        if site.tensor in ("residual", "input"):
            continue  # what a sublayer hands on is compared where it was computed
        spoilt = ~tensor if tensor.dtype == torch.bool else tensor + 0.01
        other = replace(trace, offered={**trace.offered, site: spoilt})
        (own,) = (s for s in steps(model) if site in s.sites(site.layer or 0))
        assert not check_equation(other, own, site.layer or 0).holds, f"nobody noticed {site}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_shows_a_few_lines_of_the_source(kind):
    model = random_model(**KINDS[kind])
    for step in steps(model):
        found = step.source
        assert found, step
        for snippet in found:
            assert 1 <= snippet.text.count("\n") + 1 <= MAX_LINES, (step, snippet)
            assert snippet.file.startswith("transformer/") and snippet.text.strip()


def test_a_line_that_is_gone_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"find_step has no line with 'no such line' any more"):
        lines_of(find_step, "no such " + "line")
    with pytest.raises(ValueError, match="after"):
        lines_of(find_step, "for step in", "never " + "written")


def test_the_order_is_that_of_the_paper():
    names = [str(step) for step in steps(random_model())]
    assert names[:4] == ["encoder.ids", "encoder.embedding", "encoder.positions", "encoder.self.qkv"]
    attention = ["qkv", "products", "scaled", "masked", "weights", "context", "concat", "output", "add"]
    assert [n.split(".")[2] for n in names if n.startswith("decoder.cross")] == attention
    assert names[-2:] == ["decoder.logits", "decoder.probabilities"]
    assert len(set(names)) == len(names)


def test_parts_that_a_model_never_had_are_no_steps_and_are_named():
    bare = random_model(**KINDS["bare"])
    gone, own = set(map(str, missing_steps(bare))), set(map(str, steps(bare)))
    assert not gone & own
    assert {"encoder.positions", "decoder.cross.scaled", "encoder.ffn.add"} <= gone
    assert missing_steps(random_model()) == ()


@pytest.mark.parametrize(
    "spec",
    [
        AblateHeads("decoder", 0, "cross", (1,)),
        AblateSublayer("encoder", 1, "ffn"),
        AblateResidual("decoder", 1, "self"),
        MaskEntry("decoder", 0, "cross", 2, 1),
        SetAttentionRow("encoder", 0, "self", 1, 2, 3),
        SetAttentionRow("encoder", 0, "self", 1, 2, "uniform"),
        DisableMask("causal"),
        EditPositions("encoder", "remove"),
    ],
    ids=str,
)
def test_a_switch_is_marked_where_it_acts_and_the_equations_still_hold(spec):
    model = random_model()
    trace = traced(model, (spec,))
    precise, marked = precise_trace(model, trace), []
    for step, layer in places(model):
        found = open_step(trace, step, layer)
        assert all(check.holds for check in check_opened(trace, precise, step, layer, found))
        marked += [(layer, moved) for moved in found.moved]
    sites = spec.sites(model)
    assert len(marked) == len(sites)
    assert all(moved.spec == spec and moved.by > 0 for _, moved in marked)
    assert {layer for layer, _ in marked} == {site.layer or 0 for site in sites}


LATER = {"lifted": ({}, (DisableMask("causal"),)), "never there": ({"causal_mask": False}, ())}


@pytest.mark.parametrize("kind", LATER)
def test_where_later_tokens_are_seen_each_steps_own_pass_has_the_numbers_of_the_decoding(kind):
    parts, switches = LATER[kind]
    model = random_model(**parts)
    source = [7, 9, 11, 2]
    steps = list(
        greedy(
            model,
            torch.tensor([source]),
            max_length=5,
            tap=compile_interventions(switches, model),
            record=lambda site: site.stack == "decoder",
        )
    )
    log_probs = torch.cat([step.log_probs for step in steps]).numpy()
    target = [int(step.tokens[0]) for step in steps]
    assert len(target) > 2
    softmax = find_step(model, "decoder.probabilities")
    for index, step in enumerate(steps):
        trace = record_trace(model, source, target, switches, log_probs=log_probs, source_again=source, step=index)
        assert trace.sees_later and trace.last == index and len(trace.inputs) == index + 1
        assert step.recording is not None
        for site, decoded in step.recording.items():
            mine = trace.taken[site][-1] if site.tensor == "logits" else trace.taken[site]
            np.testing.assert_allclose(mine, decoded[0], atol=1e-6, err_msg=str(site))
        np.testing.assert_array_equal(trace.taken[Site.parse("decoder.logits")][-1], step.row_logits[0])
        assert all(check_equation(trace, *place).holds for place in places(model))
        (shown,) = open_step(trace, softmax).comes_out
        assert abs(float(shown.values[index, target[index]]) - np.exp(log_probs[index, target[index]])) < 1e-6
    whole = record_trace(model, source, target, switches, log_probs=log_probs, source_again=source)
    assert len(whole.inputs) == len(target)  # nothing said: the last step's
    earlier = open_step(whole, softmax).comes_out[0].values[0, target[0]]
    assert abs(float(earlier) - np.exp(log_probs[0, target[0]])) > 1e-4  # why each step needs its own


def test_a_step_that_does_not_exist_has_no_pass():
    model = random_model(causal_mask=False)
    log_probs = np.zeros((2, model.config.vocab_size), np.float32)
    with pytest.raises(ValueError, match="step 2 does not exist: there are steps 0 to 1"):
        record_trace(model, [5, 2], [7, 2], log_probs=log_probs, source_again=[5, 2], step=2)


@pytest.mark.parametrize(
    "spec",
    [
        MaskEntry("decoder", 0, "cross", 2, 1),
        SetAttentionRow("decoder", 0, "self", 1, 2, "uniform"),
        EditPositions("decoder", "shift", 2),
        EditPositions("decoder", "same", tokens=(1, 3)),
        PatchActivation(Site.parse("decoder.1.cross.heads"), 1, (), "another"),
        PatchActivation(Site.parse("decoder.0.self.k"), None, ((0, 2),), "another"),
        PatchActivation(Site.parse("decoder.0.ffn.output"), None, (), "another"),
    ],
    ids=str,
)
def test_every_other_switch_leaves_one_pass_for_all_steps(spec):
    model = random_model()
    if isinstance(spec, PatchActivation):
        spec = spec.filled(model, [9, 4, 12, 2])
    trace = traced(model, (spec,))
    assert not trace.sees_later
    check = check_equation(trace, find_step(model, "decoder.probabilities"))
    assert "of all" in check.how and check.holds and check.tolerance <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_every_site_belongs_to_exactly_one_step(kind):
    model = random_model(**KINDS[kind])
    owned = [site for step, layer in places(model) for site in step.sites(layer)]
    assert len(owned) == len(set(owned))
    assert set(model.sites()) <= set(owned)


def test_what_does_not_exist_is_refused_in_a_sentence():
    model = random_model()
    trace = traced(model)
    with pytest.raises(ValueError, match=r"this model has no step encoder\.final"):
        open_step(trace, FinalNorm(model, "encoder"))
    with pytest.raises(ValueError, match="this model has no step nowhere"):
        find_step(model, "nowhere")
    with pytest.raises(ValueError, match="layer 9 does not exist: the decoder has layers 0 to 2"):
        open_step(trace, find_step(model, "decoder.cross.weights"), 9)
