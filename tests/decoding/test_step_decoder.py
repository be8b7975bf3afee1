"""The open decoder in fewer calls against the model's own decoder, whose every tensor a tap may read and change."""

import gc
import weakref
from copy import deepcopy

import pytest
import torch
from random_models import DECODER_BUILDS, hidden_sources, random_ids, random_model

from transformer.config import TrainConfig
from transformer.decoding import laid_out
from transformer.decoding.beam import beam_search
from transformer.decoding.cached_steps import StepDecoder
from transformer.decoding.greedy import greedy, translate_ids
from transformer.interventions import compile_interventions, parse_intervention
from transformer.model.taps import every_site
from transformer.training.optimizer import build_optimizer


@torch.no_grad()
@pytest.mark.parametrize("changes", DECODER_BUILDS, ids=str)
def test_logits_are_those_of_the_model(within, changes):
    model = random_model(torch.float64, **changes)
    (source, real), target = hidden_sources(), random_ids(3, 6)
    memory = model.encode(source, real)
    expected = model.project(model.decode(target, memory, real))
    plain = StepDecoder(model, memory, real, capacity=7)
    for position in range(6):
        within(plain.logits(target[:, position]), expected[:, position], 1e-12)
    assert plain.length == 6 and not plain.logits(target[:, 0]).is_inference()


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_rows_change_places_and_leave(within, positions):
    model = random_model(torch.float64, positions=positions)
    source, real = hidden_sources()
    memory = model.encode(source, real)
    steps = StepDecoder(model, memory, real, capacity=8)
    rows, target = torch.arange(3), torch.zeros(3, 0, dtype=torch.long)
    for kept in (torch.tensor([2, 0, 1]), torch.tensor([1, 2])):
        for _ in range(3):
            target = torch.cat((target, random_ids(len(rows), 1)), dim=1)
            expected = model.project(model.decode(target, memory[rows], real[rows]))[:, -1]
            within(steps.logits(target[:, -1]), expected, 1e-12)
        rows, target = rows[kept], target[kept]
        steps.rows(kept)
    target = torch.cat((target, random_ids(len(rows), 1)), dim=1)
    within(steps.logits(target[:, -1]), model.project(model.decode(target, memory[rows], real[rows]))[:, -1], 1e-12)


SWITCHES = [
    "",
    "off:decoder.0.self:1 off:decoder.1.cross:0,1",
    "mask:padding mask:cross",
    "forbid:decoder.1.self:2,1",
    "off:encoder.0.self:0 block:encoder.1.ffn",
    "block:decoder.0.ffn block:decoder.1.self",
]


@pytest.mark.parametrize("switches", SWITCHES)
@pytest.mark.parametrize("changes", DECODER_BUILDS, ids=str)
def test_a_tap_sees_and_changes_the_newest_position_of_a_whole_pass(within, changes, switches):
    model = random_model(torch.float64, **changes)
    source, real = hidden_sources()
    tap = compile_interventions([parse_intervention(switch) for switch in switches.split()], model)
    steps = list(greedy(model, source, real, max_length=6, tap=tap, record=every_site))
    whole = list(greedy(model, source, real, max_length=6, tap=tap, record=every_site, cache=False))
    for step, other in zip(steps, whole, strict=True):
        assert torch.equal(step.tokens, other.tokens) and (step.computed, other.computed) == (1, step.index + 1)
        within(step.row_logits, other.row_logits, 1e-12)
        assert list(step.recording) == list(other.recording)
        for site, tensor in step.recording.items():
            newest = other.recording[site]
            if site.stack == "decoder" and site.tensor not in ("k", "v", "logits"):
                newest = newest[..., -1:, :]
            assert tensor.shape == newest.shape and tensor.dtype == newest.dtype and not tensor.is_inference()
            within(tensor.double(), newest.double(), 1e-12)


@pytest.mark.parametrize("switches", ["mask:window", "mask:window mask:padding", "mask:window off:decoder.0.self:1"])
@pytest.mark.parametrize("positions", ["sinusoidal", "alibi"])
def test_keys_that_were_kept_are_seen_where_the_window_is_lifted(within, switches, positions):
    model, (source, real) = random_model(torch.float64, window=2, positions=positions), hidden_sources()
    tap = compile_interventions([parse_intervention(switch) for switch in switches.split()], model)
    steps, whole, windowed = (
        list(greedy(model, source, real, max_length=6, **how))
        for how in ({"tap": tap}, {"tap": tap, "cache": False}, {})
    )
    assert steps[-1].computed == 1
    for step, other in zip(steps, whole, strict=True):
        within(step.row_logits, other.row_logits, 1e-12)
    assert (steps[-1].row_logits - windowed[-1].row_logits).abs().max() > 1e-3


@pytest.mark.parametrize("switch", ["residual:off:decoder.1.cross", "positions:decoder:scale:0.5"])
def test_what_some_models_lack_can_be_switched_off_at_each_step(within, switch):
    model, (source, real) = random_model(torch.float64), hidden_sources()
    tap = compile_interventions([parse_intervention(switch)], model)
    steps, whole = (list(greedy(model, source, real, max_length=6, tap=tap, cache=cache)) for cache in (True, False))
    for step, other in zip(steps, whole, strict=True):
        within(step.row_logits, other.row_logits, 1e-12)


def test_a_recorded_beam_search_is_the_same(within):
    """Each row asks for itself where somebody looks."""
    model, (source, real) = random_model(torch.float64), hidden_sources()
    *_, plain = beam_search(model, source, real, size=3, max_length=6, alpha=0.6)
    steps = list(
        beam_search(model, source, real, size=3, max_length=6, alpha=0.6, record=lambda s: s.sublayer == "cross")
    )
    *_, slow = beam_search(model, source, real, size=3, max_length=6, alpha=0.6, tap=lambda site, tensor: tensor)
    quick = list(
        beam_search(model, source, real, size=3, max_length=6, alpha=0.6, record=lambda s: s.tensor == "weights")
    )
    assert steps[-1].finished and len(quick[0].recording["decoder.0.cross.weights"]) == 9
    for other in (steps[-1], quick[-1], slow):
        for ours, theirs in zip(plain.finished, other.finished, strict=True):
            assert [h.ids for h in ours] == [h.ids for h in theirs]
            within(torch.tensor([h.score for h in ours]), torch.tensor([h.score for h in theirs]), 1e-12)


def test_the_cache_takes_its_memory_once():
    """However many steps follow, keys and values stay where they were put; rows that leave need no more."""
    model, (source, real) = random_model(), hidden_sources()
    kept, used = [], set()

    def keep(site, tensor):
        if str(site) == "decoder.0.self.k":
            kept.append(tensor)
        return tensor

    steps = StepDecoder(model, model.encode(source, real), real, capacity=8)
    for position in range(8):
        rows = 2 if position > 4 else 3
        steps.logits(random_ids(rows, 1)[:, 0], keep)
        used.add(kept[-1].untyped_storage().data_ptr())
        if position == 4:
            steps.rows(torch.tensor([2, 0]))
    assert [k.shape[:3] for k in (kept[0], kept[-1])] == [(3, 4, 1), (2, 4, 8)] and len(used) == 2


def test_more_tokens_than_the_model_takes_are_refused():
    model, (source, real) = random_model(max_length=9), hidden_sources()
    with pytest.raises(ValueError, match=r"this model takes at most 9 tokens \(max_length\), not 10"):
        StepDecoder(model, model.encode(source, real), real, capacity=10)


def test_changed_weights_count_at_once():
    model, other, (source, real) = random_model().requires_grad_(False), random_model(), hidden_sources()
    before = translate_ids(model, source, real, max_length=8)
    model.load_state_dict(other.state_dict())
    after = translate_ids(model, source, real, max_length=8)
    assert after == translate_ids(other, source, real, max_length=8) != before


def test_a_step_of_training_counts_at_once():
    """A fused step leaves no trace in the versions of the weights."""
    model, (source, real) = random_model(), hidden_sources()
    optimizer = build_optimizer(model, TrainConfig(learning_rate=0.5))
    before = translate_ids(model, source, real, max_length=8)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    after = translate_ids(model, source, real, max_length=8)
    assert after == translate_ids(deepcopy(model), source, real, max_length=8) != before


def zero_through_data(model):
    model.decoder.layers[0].cross_attention.output.weight.data.zero_()


def negate_through_numpy(model):
    values = model.decoder.layers[1].feed_forward.inner.weight.detach().numpy()
    values *= -1


def flip_through_data(model):
    """Keeps the sum, the norm and every row's set of values."""
    weight = model.decoder.layers[0].self_attention.value.weight
    weight.data.copy_(weight.data.flip(1))


def put_other_memory_in(model):
    weight = model.decoder.layers[0].cross_attention.query.weight
    weight.data = weight.data.flip(0).contiguous()


def put_memory_in_another_order(model):
    weight = model.decoder.layers[0].cross_attention.output.weight
    weight.data = weight.data.t()


def scale_embedding(model):
    model.decoder.embedding.scale *= 3


def raise_epsilon(model):
    model.decoder.layers[0].add_norm_cross.norm.eps = 30.0


def leave_scores_unscaled(model):
    model.decoder.layers[0].cross_attention.score.scaled = False


def cut_residual(model):
    model.decoder.layers[1].add_norm_ffn.residual = False


def replace_a_module(model):
    model.decoder.layers[1].feed_forward.outer = torch.nn.Linear(24, 16, dtype=torch.float64).requires_grad_(False)


def replace_a_parameter(model):
    model.projection.weight = torch.nn.Parameter(model.projection.weight.flip(0), requires_grad=False)


def flip_in_the_encoder(model):
    weight = model.encoder.layers[0].self_attention.value.weight
    weight.data.copy_(weight.data.flip(1))


def scale_source_embedding(model):
    model.encoder.embedding.scale *= 3


EDITS = [
    flip_in_the_encoder,
    scale_source_embedding,
    zero_through_data,
    negate_through_numpy,
    flip_through_data,
    put_other_memory_in,
    put_memory_in_another_order,
    scale_embedding,
    raise_epsilon,
    leave_scores_unscaled,
    cut_residual,
    replace_a_module,
    replace_a_parameter,
]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_between_two_decodings_counts_however_it_was_made(within, edit):
    model, (source, real) = random_model(torch.float64).requires_grad_(False), hidden_sources()

    def logits(cache):
        return [step.row_logits for step in greedy(model, source, real, max_length=4, cache=cache)]

    before = logits(cache=True)
    edit(model)
    for _ in range(2):
        for cached, whole in zip(logits(cache=True), logits(cache=False), strict=True):
            within(cached, whole, 1e-12)
    assert not torch.allclose(before[0], logits(cache=True)[0], rtol=0, atol=1e-6)


def test_weights_are_laid_out_once_and_go_with_their_model():
    model, (source, real) = random_model().requires_grad_(False), hidden_sources()
    translate_ids(model, source, real, max_length=3)
    weights = weakref.ref(laid_out._KEPT[model][1])
    translate_ids(model, source, real, max_length=3)
    assert laid_out._KEPT[model][1] is weights()
    del model
    gc.collect()
    assert weights() is None
