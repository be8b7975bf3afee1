"""Heads times a factor before W_O: off at 0, unchanged at 1, proportional in between."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import half_trained_model, ragged_batch, random_model

from transformer.decoding.greedy import greedy
from transformer.interventions import AblateHeads, ScaleHeads, compile_interventions, merged, parse_intervention
from transformer.model.taps import Recorder, Site, chain

SUBLAYERS = [("encoder", 1, "self"), ("decoder", 0, "self"), ("decoder", 2, "cross")]


@torch.no_grad()
def run(model, *specs):
    """The logits and the recording of a pass under the given switches, on the same batch each time."""
    torch.manual_seed(1)
    recorder = Recorder()
    logits = model(*ragged_batch(), tap=chain(compile_interventions(specs, model), recorder))
    return logits, recorder.recording


@pytest.mark.parametrize("sublayer", SUBLAYERS, ids=str)
def test_a_factor_of_zero_is_exactly_off(sublayer):
    model = random_model()
    off = run(model, AblateHeads(*sublayer, (1, 3)))[0]
    assert torch.equal(run(model, ScaleHeads(*sublayer, (1, 3), 0.0))[0], off)
    assert not torch.equal(run(model)[0], off)


@pytest.mark.parametrize("sublayer", SUBLAYERS, ids=str)
def test_a_factor_of_one_changes_no_bit_and_says_that_it_is_idle(sublayer):
    model, spec = random_model(), ScaleHeads(*sublayer, (0, 1, 2, 3), 1.0)
    assert torch.equal(run(model, spec)[0], run(model)[0])
    assert spec.idle(3, looks_back=True) == "a factor of 1 changes nothing."
    assert ScaleHeads(*sublayer, (0,), 0.99).idle(3, looks_back=True) == ""


@given(st.sampled_from(SUBLAYERS), st.floats(0, 2), st.sets(st.integers(0, 3), min_size=1))
def test_what_the_heads_add_to_the_output_is_proportional_to_the_factor(sublayer, factor, heads):
    model = random_model(torch.float64)
    output = Site(*sublayer, "output")
    heads = tuple(sorted(heads))
    off, full, scaled = (
        run(model, *specs)[1][output]
        for specs in ((AblateHeads(*sublayer, heads),), (), (ScaleHeads(*sublayer, heads, factor),))
    )
    torch.testing.assert_close(scaled - off, factor * (full - off), atol=1e-12, rtol=0)


def test_other_heads_and_all_weights_of_the_sublayer_stay_as_they_are():
    model, sublayer = random_model(), SUBLAYERS[1]
    plain, scaled = run(model)[1], run(model, ScaleHeads(*sublayer, (1,), 2.0))[1]
    weights, heads = Site(*sublayer, "weights"), Site(*sublayer, "heads")
    assert torch.equal(plain[weights], scaled[weights])
    assert torch.equal(plain[heads][:, [0, 2, 3]], scaled[heads][:, [0, 2, 3]])
    assert torch.equal(2 * plain[heads][:, 1], scaled[heads][:, 1])


def test_decoding_with_and_without_the_cache_writes_the_same():
    model = half_trained_model()
    tap = compile_interventions([ScaleHeads("decoder", 1, "self", (0, 2), 0.25)], model)
    found = [
        [step.log_probs for step in greedy(model, torch.tensor([[5, 9, 4, 2]]), max_length=8, tap=tap, cache=cache)]
        for cache in (True, False)
    ]
    torch.testing.assert_close(torch.stack(found[0]), torch.stack(found[1]), atol=1e-5, rtol=1e-5)


@given(
    st.sampled_from(["encoder", "decoder"]),
    st.integers(0, 99),
    st.sampled_from(["self", "cross"]),
    st.sets(st.integers(0, 63), min_size=1),
    st.floats(0, 2),
)
def test_it_is_read_back_from_what_it_prints(stack, layer, sublayer, heads, factor):
    spec = ScaleHeads(stack, layer, sublayer, tuple(sorted(heads)), factor)
    again = parse_intervention(str(spec))
    assert again == spec and hash(again) == hash(spec)


def test_its_form_in_links():
    spec = ScaleHeads("decoder", 0, "cross", (1, 3), 0.5)
    assert str(spec) == "scale:decoder.0.cross:1,3:0.5"
    assert str(parse_intervention("scale:decoder.0.cross:3,1:-0")) == "scale:decoder.0.cross:1,3:0"


@pytest.mark.parametrize("factor", ["nan", "inf", "-0.5", "2.01", "1e999"])
def test_a_factor_out_of_range_is_refused_in_a_sentence(factor):
    with pytest.raises(ValueError, match=r"the factor of scale:encoder\.0\.self:1:.* must be a number from 0 to 2$"):
        compile_interventions([parse_intervention(f"scale:encoder.0.self:1:{factor}")], random_model())


@pytest.mark.parametrize("text", ["scale:encoder.0.self:1", "scale:encoder.0.self:1:half", "scale:encoder.0.ffn:1:0.5"])
def test_what_is_no_scale_is_refused(text):
    with pytest.raises(ValueError, match="is not a switch"):
        parse_intervention(text)


def test_of_two_switches_for_one_head_the_last_counts_and_equal_factors_are_joined():
    at = ("decoder", 0, "cross")
    assert merged([AblateHeads(*at, (1, 2)), ScaleHeads(*at, (2,), 0.5), ScaleHeads(*at, (0,), 0.5)]) == (
        AblateHeads(*at, (1,)),
        ScaleHeads(*at, (0, 2), 0.5),
    )
    assert merged([ScaleHeads(*at, (1,), 0.5), ScaleHeads(*at, (1,), 2.0)]) == (ScaleHeads(*at, (1,), 2.0),)
