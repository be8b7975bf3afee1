"""Blocks, cells and rows: each edit does what it says, with and without a cache, and prints what reads back."""

import pytest
import torch
from random_models import half_trained_model, random_ids, random_model

from transformer.attention_edits import BlockOff, CellOff, RowSet
from transformer.decoding import greedy, teacher_forced_log_probs
from transformer.interventions import HeadsOff, MaskOff, compile_interventions, parse_intervention
from transformer.taps import Recorder, Site, chain

SPECS = [
    BlockOff("decoder", 0, "cross"),
    BlockOff("encoder", 1, "ffn"),
    CellOff("decoder", 1, "cross", 2, 4),
    CellOff("decoder", 0, "self", 3, 1),
    CellOff("encoder", 0, "self", 0, 5),
    RowSet("decoder", 1, "cross", 2, 1, "uniform"),
    RowSet("decoder", 1, "self", 3, 2, 0),
    RowSet("encoder", 0, "self", 1, 4, 5),
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
        (BlockOff("encoder", 0, "cross"), "this model has no block encoder.0.cross"),
        (BlockOff("decoder", 7, "ffn"), "this model has no block decoder.7.ffn"),
        (CellOff("decoder", 0, "ffn", 0, 0), "this model has no block decoder.0.ffn with mask"),
        (CellOff("decoder", 0, "self", 64, 0), "position 64 does not exist: this model has positions 0 to 63"),
        (RowSet("decoder", 0, "self", 4, 1, 0), "head 4 does not exist: this model has heads 0 to 3"),
        (RowSet("decoder", 0, "self", 0, 1, 3), "key 3 comes after row 1: it does not exist yet"),
    ],
)
def test_an_edit_that_fits_no_model_is_refused(spec, said):
    with pytest.raises(ValueError, match=said):
        compile_interventions([spec], random_model())


@pytest.mark.parametrize(
    ("stack", "block"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross"), ("decoder", "ffn")]
)
def test_a_block_that_is_off_leaves_its_residual_alone(stack, block):
    model = random_model(norm="pre")
    source, target = random_ids(1, 6), random_ids(1, 5)
    seen = recorded(model, [BlockOff(stack, 0, block)], source, target)
    assert not seen[Site(stack, 0, block, "output")].any()
    following = {"self": "ffn" if stack == "encoder" else "cross", "cross": "ffn"}.get(block)
    after = Site(stack, 0, following, "input") if following else Site(stack, 1, "self", "input")
    assert torch.equal(seen[after], seen[Site(stack, 0, block, "input")])


def test_all_heads_off_leave_the_bias_and_the_block_off_leaves_zero(within):
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 5)
    site = Site("decoder", 0, "cross", "output")
    heads = recorded(model, [HeadsOff("decoder", 0, "cross", (0, 1, 2, 3))], source, target)[site]
    bias = model.decoder.layers[0].cross_attention.output.bias
    within(heads, bias.expand_as(heads), 1e-6)
    assert not recorded(model, [BlockOff("decoder", 0, "cross")], source, target)[site].any()


@pytest.mark.parametrize(("stack", "block"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_a_forbidden_cell_has_no_weight_in_any_head_and_no_other_row_changes(stack, block, within):
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 5)
    site = Site(stack, 0, block, "weights")
    before = recorded(model, (), source, target)[site]
    after = recorded(model, [CellOff(stack, 0, block, 3, 2)], source, target)[site]
    assert (after[:, :, 3, 2] == 0).all()
    expected = before.clone()
    expected[:, :, 3, 2] = 0
    expected[:, :, 3] /= expected[:, :, 3].sum(dim=-1, keepdim=True)
    within(after, expected, 1e-6)


def test_a_cell_stays_forbidden_when_the_causal_mask_is_lifted():
    model = random_model()
    specs = [CellOff("decoder", 0, "self", 1, 3), MaskOff("causal")]
    weights = recorded(model, specs, random_ids(1, 6), random_ids(1, 5))["decoder.0.self.weights"]
    assert (weights[:, :, 1, 3] == 0).all() and (weights[:, :, 1, 4] > 0).all()


@pytest.mark.parametrize(("stack", "block"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_an_overwritten_row_is_what_was_asked(stack, block, within):
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 5)
    site = Site(stack, 0, block, "weights")
    even = recorded(model, [RowSet(stack, 0, block, 1, 3, "uniform")], source, target)[site][0, 1, 3]
    n_keys = 4 if (stack, block) == ("decoder", "self") else 6
    within(even[:n_keys], torch.full((n_keys,), 1 / n_keys), 1e-6)
    assert not even[n_keys:].any()
    seen = recorded(model, [RowSet(stack, 0, block, 1, 3, 2)], source, target)[site]
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
