"""Blocks, cells and rows: each edit does what it says, with and without a cache, and prints what reads back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import half_trained_model, random_ids, random_model

from transformer.decoding.greedy import greedy, teacher_forced_log_probs
from transformer.interventions import (
    AblateHeads,
    AblateSublayer,
    DisableMask,
    MaskEntry,
    SetAttentionRow,
    compile_interventions,
    parse_intervention,
)
from transformer.model.taps import Recorder, Site, chain

SPECS = [
    AblateSublayer("decoder", 0, "cross"),
    AblateSublayer("encoder", 1, "ffn"),
    MaskEntry("decoder", 1, "cross", 2, 4),
    MaskEntry("decoder", 0, "self", 3, 1),
    MaskEntry("encoder", 0, "self", 0, 5),
    SetAttentionRow("decoder", 1, "cross", 2, 1, "uniform"),
    SetAttentionRow("decoder", 1, "self", 3, 2, 0),
    SetAttentionRow("encoder", 0, "self", 1, 4, 5),
    SetAttentionRow("encoder", 1, "self", 1, 4, (1, 2, 0, 0.5, 0, 0)),
    SetAttentionRow("decoder", 0, "self", 1, 2, (1, 2, 0.5)),
    SetAttentionRow("decoder", 1, "cross", 3, 1, (0, 0, 2, 0, 0, 1)),
]


def recorded(model, specs, source, target):
    recorder = Recorder()
    model(source, target, tap=chain(compile_interventions(specs, model), recorder))
    return recorder.recording


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_edit_is_read_back_from_what_it_prints_and_hashes(spec):
    again = parse_intervention(str(spec))
    assert again == spec and hash(again) == hash(spec)


@pytest.mark.parametrize(
    "text",
    [
        *("block:decoder.0", "block:decoder.0.final", "forbid:decoder.0.ffn:1,2", "forbid:decoder.0.cross:1"),
        *("forbid:decoder.0.cross:1,x", "row:decoder.0.cross:1:uniform", "row:decoder.0.cross.1:2:even", "row:::"),
    ],
)
def test_what_is_no_edit_is_refused(text):
    with pytest.raises(ValueError, match="is not a switch"):
        parse_intervention(text)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (AblateSublayer("encoder", 0, "cross"), "this model has no block encoder.0.cross"),
        (AblateSublayer("decoder", 7, "ffn"), "this model has no block decoder.7.ffn"),
        (MaskEntry("decoder", 0, "ffn", 0, 0), "this model has no block decoder.0.ffn with mask"),
        (MaskEntry("decoder", 0, "self", 64, 0), "position 64 does not exist: this model has positions 0 to 63"),
        (SetAttentionRow("decoder", 0, "self", 4, 1, 0), "head 4 does not exist: this model has heads 0 to 3"),
        (SetAttentionRow("decoder", 0, "self", 0, 1, 3), "key 3 comes after row 1: it does not exist yet"),
    ],
)
def test_an_edit_that_fits_no_model_is_refused(spec, said):
    with pytest.raises(ValueError, match=said):
        compile_interventions([spec], random_model())


@pytest.mark.parametrize(
    ("stack", "sublayer"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross"), ("decoder", "ffn")]
)
def test_a_sublayer_that_is_off_leaves_its_residual_alone(stack, sublayer):
    model = random_model(norm="pre")
    source, target = random_ids(1, 6), random_ids(1, 5)
    seen = recorded(model, [AblateSublayer(stack, 0, sublayer)], source, target)
    assert not seen[Site(stack, 0, sublayer, "output")].any()
    following = {"self": "ffn" if stack == "encoder" else "cross", "cross": "ffn"}.get(sublayer)
    after = Site(stack, 0, following, "input") if following else Site(stack, 1, "self", "input")
    assert torch.equal(seen[after], seen[Site(stack, 0, sublayer, "input")])


def test_all_heads_off_leave_the_bias_and_the_sublayer_off_leaves_zero(within):
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 5)
    site = Site("decoder", 0, "cross", "output")
    heads = recorded(model, [AblateHeads("decoder", 0, "cross", (0, 1, 2, 3))], source, target)[site]
    bias = model.decoder.layers[0].cross_attention.output.bias
    within(heads, bias.expand_as(heads), 1e-6)
    assert not recorded(model, [AblateSublayer("decoder", 0, "cross")], source, target)[site].any()


@pytest.mark.parametrize(("stack", "sublayer"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_a_forbidden_cell_has_no_weight_in_any_head_and_no_other_row_changes(stack, sublayer, within):
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 5)
    site = Site(stack, 0, sublayer, "weights")
    before = recorded(model, (), source, target)[site]
    after = recorded(model, [MaskEntry(stack, 0, sublayer, 3, 2)], source, target)[site]
    assert (after[:, :, 3, 2] == 0).all()
    expected = before.clone()
    expected[:, :, 3, 2] = 0
    expected[:, :, 3] /= expected[:, :, 3].sum(dim=-1, keepdim=True)
    within(after, expected, 1e-6)


def test_a_cell_stays_forbidden_when_the_causal_mask_is_lifted():
    model = random_model()
    specs = [MaskEntry("decoder", 0, "self", 1, 3), DisableMask("causal")]
    weights = recorded(model, specs, random_ids(1, 6), random_ids(1, 5))["decoder.0.self.weights"]
    assert (weights[:, :, 1, 3] == 0).all() and (weights[:, :, 1, 4] > 0).all()


@pytest.mark.parametrize(("stack", "sublayer"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_an_overwritten_row_is_what_was_asked(stack, sublayer, within):
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 5)
    site = Site(stack, 0, sublayer, "weights")
    even = recorded(model, [SetAttentionRow(stack, 0, sublayer, 1, 3, "uniform")], source, target)[site][0, 1, 3]
    n_keys = 4 if (stack, sublayer) == ("decoder", "self") else 6
    within(even[:n_keys], torch.full((n_keys,), 1 / n_keys), 1e-6)
    assert not even[n_keys:].any()
    seen = recorded(model, [SetAttentionRow(stack, 0, sublayer, 1, 3, 2)], source, target)[site]
    assert seen[0, 1, 3].tolist() == [float(k == 2) for k in range(seen.size(-1))]
    within(seen[:, [0, 2, 3]], recorded(model, (), source, target)[site][:, [0, 2, 3]], 0.0)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_decoding_under_an_edit_equals_the_teacher_forced_pass_under_it(spec, within):
    model, source = half_trained_model(), torch.tensor([[5, 9, 4, 7, 11, 2]])
    tap = compile_interventions([spec], model)
    steps = list(greedy(model, source, max_length=10, tap=tap))
    target = torch.stack([step.tokens for step in steps], dim=1)
    forced = teacher_forced_log_probs(model, source, target, tap=tap)[0]
    within(torch.cat([step.log_probs for step in steps]), forced, 1e-4)
    assert (teacher_forced_log_probs(model, source, target)[0] - forced).abs().max() > 1e-6


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        (SetAttentionRow("encoder", 0, "self", 1, 4, (1, 0, 2.5, 0.5, 0, 1)), [0.2, 0, 0.5, 0.1, 0, 0.2]),
        (SetAttentionRow("decoder", 1, "cross", 2, 3, (0, 0, 0, 0, 3, 1)), [0, 0, 0, 0, 0.75, 0.25]),
        (SetAttentionRow("decoder", 1, "self", 0, 2, (1, 1, 2)), [0.25, 0.25, 0.5, 0, 0]),
    ],
    ids=str,
)
def test_own_numbers_are_divided_by_their_sum_and_nothing_else_changes(spec, asked, within):
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 5)
    site = Site(spec.stack, spec.layer, spec.sublayer, "weights")
    before, after = (recorded(model, specs, source, target)[site] for specs in ((), [spec]))
    within(after[0, spec.head, spec.query], torch.tensor(asked), 1e-7)
    after[0, spec.head, spec.query] = before[0, spec.head, spec.query]
    assert torch.equal(after, before)


def test_what_follows_from_own_numbers_is_the_weighted_sum_of_the_values(within):
    """The context of the row, recomputed value by value."""
    model, spec = random_model(torch.float64), SetAttentionRow("decoder", 0, "cross", 3, 1, (4, 1, 0, 0, 3, 2))
    seen = recorded(model, [spec], random_ids(1, 6), random_ids(1, 5))
    values = seen["decoder.0.cross.v"][0, 3]
    expected = sum(w / 10 * v for w, v in zip((4, 1, 0, 0, 3, 2), values, strict=True))
    within(seen["decoder.0.cross.heads"][0, 3, 1], expected, 1e-12)


@given(st.lists(st.floats(0, 1e300), min_size=2, max_size=8))
def test_own_numbers_are_read_back_from_what_they_print_and_hash(numbers):
    spec = SetAttentionRow("decoder", 1, "cross", 2, 3, tuple(numbers))
    again = parse_intervention(str(spec))
    assert again == spec and hash(again) == hash(spec)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ((1.0, -0.5, 1.0), r"the weight of key 1 \(-0.5\) is negative: weights are 0 or more"),
        ((0.0, 0.0, 0.0), "the weights sum to 0 and cannot be divided by that"),
        ((1e308, 1e308, 1e308), "the weights sum to inf"),
        ((1.0, float("nan"), 1.0), r"the weight of key 1 \(nan\) is not a finite number"),
        ((1.0, float("inf"), 1.0), r"the weight of key 1 \(inf\) is not a finite number"),
        ((1.0, 1.0), "row 2 of the decoder's self-attention has 3 keys, and 2 numbers are given"),
        ((1.0,), "a row with a single key has the weight 1 whatever is asked"),
    ],
)
def test_numbers_that_cannot_be_weights_are_refused(to, said):
    with pytest.raises(ValueError, match=said):
        compile_interventions([SetAttentionRow("decoder", 1, "self", 0, 2, to)], random_model())


@pytest.mark.parametrize("text", ["nan,1", "1,inf", "1,", ",1", "1,,2", "0x1,2", "1e9999,1", "１,2", "1_0,2"])
def test_what_are_no_numbers_is_refused(text):
    with pytest.raises(ValueError, match="is not a switch"):
        parse_intervention(f"row:decoder.0.cross.1:2:{text}")


def test_as_many_numbers_as_keys_are_needed():
    spec = SetAttentionRow("encoder", 0, "self", 1, 2, (1, 2, 3))
    with pytest.raises(ValueError, match="the row has 6 keys, and 3 numbers are given: it needs one for each"):
        recorded(random_model(), [spec], random_ids(1, 6), random_ids(1, 5))
    with pytest.raises(ValueError, match="the row has 7 keys, and 3 numbers are given"):
        spec.check_source(7)
    spec.check_source(3)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (MaskEntry("encoder", 0, "self", 9, 0), "query 9 does not exist: the sentence has tokens 0 to 5"),
        (MaskEntry("decoder", 0, "cross", 9, 6), "key 6 does not exist: the sentence has tokens 0 to 5"),
        (SetAttentionRow("encoder", 0, "self", 0, 0, 6), "key 6 does not exist: the sentence has tokens 0 to 5"),
    ],
)
def test_a_position_past_the_sentence_is_said(spec, said):
    with pytest.raises(ValueError, match=said):
        spec.check_source(6)


def test_steps_of_the_output_may_come_later():
    """A step past the source's length is no error; it changes nothing until the output reaches it, and acts there."""
    model, source, target = random_model(), random_ids(1, 6), random_ids(1, 10)
    entry, row = MaskEntry("decoder", 0, "self", 9, 8), SetAttentionRow("decoder", 0, "cross", 0, 9, 5)
    for spec in (entry, row):
        spec.check_source(source.size(1))
    before, short = (recorded(model, specs, source, target[:, :9]) for specs in ([], [entry, row]))
    assert all(torch.equal(before[site], short[site]) for site in before if site.tensor == "weights")
    long = recorded(model, [entry, row], source, target)
    assert (long["decoder.0.self.weights"][0, :, 9, 8] == 0).all()
    assert long["decoder.0.cross.weights"][0, 0, 9].tolist() == [0, 0, 0, 0, 0, 1]


def test_a_row_that_puts_weight_on_a_forbidden_cell_is_refused():
    row, cell = SetAttentionRow("decoder", 1, "self", 0, 2, (1, 1, 0)), MaskEntry("decoder", 1, "self", 2, 1)
    with pytest.raises(ValueError, match="puts weight on key 1, which another switch forbids to row 2"):
        compile_interventions([cell, row], random_model())
    for other in (MaskEntry("decoder", 1, "self", 2, 2), MaskEntry("decoder", 1, "self", 3, 1)):
        assert compile_interventions([other, row], random_model()) is not None
