"""Tests that need a GPU; skipped, with a reason, where there is none."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from random_models import (
    EVERY_BUILD,
    SWITCH_OF_EACH_KIND,
    half_trained_model,
    hidden_sources,
    ragged_batch,
    random_model,
    reversals,
)
from tiny_runs import CPU, MODEL, corpus, settings, tokenizer
from torch import Tensor
from torch.nn import functional as F

from transformer.config import Precision
from transformer.data.batches import BatchStream
from transformer.decoding.beam import beam_search
from transformer.decoding.greedy import NextToken, greedy, translate_ids
from transformer.interventions import compile_interventions, parse_intervention
from transformer.lab import load
from transformer.model.attention import explicit_attention, fused_attention
from transformer.model.taps import Recorder
from transformer.runs.live.outputs import live_output
from transformer.training import loss as losses
from transformer.training.devices import avoid_faulty_kernels
from transformer.training.evaluation import evaluate
from transformer.training.state import TrainState, new_state, restored_state
from transformer.training.step import Stepper

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; this machine has none"),
]
GPU = torch.device("cuda")
PATHS = pytest.mark.parametrize("attention", [explicit_attention, fused_attention])
TOLERANCES = [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)]


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES, ids=str)
@pytest.mark.parametrize("d_head", [16, 64, 128])
def test_fused_equals_explicit_in_values_and_gradients(within, dtype, tolerance, d_head):
    mask = (torch.rand(4, 1, 48, 48) < 0.7).cuda()
    mask[0, 0, :3] = False
    qkv = [torch.randn(4, 4, 48, d_head, dtype=dtype, device="cuda") for _ in range(3)]
    results = []
    for attention in (explicit_attention, fused_attention):
        leaves = [x.clone().requires_grad_() for x in qkv]
        output = attention(*leaves, mask)
        results.append((output.detach(), *torch.autograd.grad(output.float().square().mean(), leaves)))
    for explicit, fused in zip(*results, strict=True):
        within(fused, explicit, tolerance)


@PATHS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_fully_masked_row_is_zero_with_finite_gradients(attention, dtype):
    q, k, v = (torch.randn(2, 2, 16, 64, dtype=dtype, device="cuda", requires_grad=True) for _ in range(3))
    mask = torch.ones(2, 1, 16, 16, dtype=torch.bool, device="cuda")
    mask[0], mask[1, 0, 2] = False, False
    output = attention(q, k, v, mask)
    assert (output[0] == 0).all() and (output[1, :, 2] == 0).all()
    assert (output[1, :, 3] != 0).any()
    output.float().sum().backward()
    for x in (q, k, v):
        assert torch.isfinite(x.grad).all() and (x.grad[0] == 0).all()


@pytest.mark.parametrize("n", [64, 192])
def test_gradients_are_finite_where_every_score_is_far_below_zero(n):
    avoid_faulty_kernels(GPU)
    q, k, v = (0.1 * torch.randn(1, 1, n, 64, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    q[..., 0], k[..., 0] = 1.0, -120 * 8  # scores near -120: a row's exponentials sum to less than float32 holds
    leaves = [x.requires_grad_() for x in (q, k, v)]
    output = fused_attention(*leaves, torch.ones(1, 1, n, n, dtype=torch.bool, device="cuda").tril())
    assert all(torch.isfinite(x).all() for x in torch.autograd.grad(output.float().square().sum(), leaves))


@torch.no_grad()
def test_the_gpu_s_logits_are_the_cpu_s(within):
    model = random_model(torch.float64)
    source, target = ragged_batch()
    expected = model(source, target)[target != 0]
    on_gpu = model.cuda()(source.cuda(), target.cuda())[target.cuda() != 0]
    within(on_gpu.cpu(), expected, 1e-12)


@torch.no_grad()
def test_fused_and_explicit_logits_agree_under_bfloat16_autocast():
    model = random_model().cuda()
    source, target = (ids.cuda() for ids in ragged_batch())
    with torch.autocast("cuda", torch.bfloat16):
        fused, explicit = (model(source, target, tap=tap) for tap in (None, Recorder(lambda site: False)))
    # Per attention call 2e-2; through five layers of norms with random gains the logits may part a little more.
    assert (fused - explicit).abs().max() / explicit.abs().max() <= 2e-2


@torch.no_grad()
def test_future_tokens_never_change_past_logits():
    model = random_model().cuda()
    source, target = (ids.cuda() for ids in ragged_batch())
    changed = target.clone()
    changed[:, 4:] = 5
    assert (model(source, target) - model(source, changed))[:, :4].abs().max() == 0


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_training_lowers_the_loss(precision):
    model = random_model(d_model=32, n_decoder_layers=2, vocab_size=12).cuda().train()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(60):
        source, target = (ids.cuda() for ids in reversals(32))
        with torch.autocast("cuda", precision, enabled=precision != torch.float32):
            logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.float().transpose(1, 2), target[:, 1:], ignore_index=0)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])


def test_translations_are_those_of_the_cpu():
    model, (source, _) = half_trained_model(torch.float64), reversals(16)
    expected = translate_ids(model, source, max_length=12)
    assert translate_ids(model.cuda(), source.cuda(), max_length=12) == expected


@torch.no_grad()
@pytest.mark.parametrize("build", EVERY_BUILD)
def test_logits_of_every_build_are_those_of_the_cpu(within, build):
    model = EVERY_BUILD[build](torch.float64)
    source, target = ragged_batch()
    expected = model(source, target)[target != 0]
    found = model.to(GPU)(source.to(GPU), target.to(GPU)).cpu()
    within(found[target != 0], expected, 1e-11)


@torch.no_grad()
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("build", EVERY_BUILD)
def test_the_outputs_of_every_build_are_those_of_the_cpu(build, recorded):
    model, (source, real) = EVERY_BUILD[build](torch.float64), hidden_sources()
    record = (lambda site: True) if recorded else None

    def written(device: torch.device) -> Tensor:
        steps = greedy(model.to(device), source.to(device), real.to(device), max_length=8, record=record)
        return torch.stack([step.tokens.cpu() for step in steps])

    assert torch.equal(written(CPU), written(GPU))


@pytest.mark.parametrize("cache", [True, False])
def test_a_beam_search_finds_what_it_finds_on_the_cpu(cache):
    model, (source, _) = half_trained_model(torch.float64), reversals(16)

    def results(device: torch.device) -> list[list[tuple[tuple[int, ...], bool]]]:
        *_, last = beam_search(model.to(device), source.to(device), size=4, max_length=12, cache=cache)
        return [[(hypothesis.ids, hypothesis.ended) for hypothesis in several] for several in last.finished]

    assert results(CPU) == results(GPU)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-11)], ids=str)
def test_captured_steps_give_what_plain_ones_do(monkeypatch, within, dtype, tolerance, size):
    model, (source, _) = half_trained_model(dtype).to(GPU), reversals(16)
    results = []
    for is_captured in (True, False):
        if not is_captured:
            monkeypatch.setattr("transformer.decoding.greedy.captures", lambda *_: False)
        if size == 1:
            results.append([step.row_log_probs for step in greedy(model, source.to(GPU), max_length=12)])
        else:
            steps = beam_search(model, source.to(GPU), size=size, max_length=12)
            results.append([step.row_log_probs for step in steps])
    assert len(results[0]) == len(results[1]) > 4
    for captured, plain in zip(*results, strict=True):
        within(captured, plain, tolerance)


def test_a_step_of_a_search_is_captured_once_and_replayed():
    model, (source, real) = random_model().to(GPU), (given.to(GPU) for given in hidden_sources())
    search = NextToken(model, source, real, max_length=8, tap=None, record=None, cache=True)
    chosen, graphs = source.new_full((3,), 1), []
    for _ in range(8):
        search.logits(chosen)
        graphs.append(search._steps._graph)
    assert graphs[:3] == [None] * 3 and isinstance(graphs[3], torch.cuda.CUDAGraph)
    assert all(graph is graphs[3] for graph in graphs[3:])


def test_a_model_that_is_changed_between_two_searches_writes_something_else():
    model, (source, _) = half_trained_model(torch.float64).to(GPU), reversals(4)
    first, again = (translate_ids(model, source.to(GPU), max_length=12) for _ in range(2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.neg_()
    changed = translate_ids(model, source.to(GPU), max_length=12)
    assert first == again != changed == translate_ids(model.cpu(), source, max_length=12)


@torch.no_grad()
@pytest.mark.parametrize("switch", [*SWITCH_OF_EACH_KIND, "mask:padding", "positions:encoder:shuffle:1"])
def test_a_pass_under_a_switch_is_that_of_the_cpu(within, switch):
    lab = load("reverse")
    specs = lab.inspect("a b c d e", [parse_intervention(switch)]).interventions
    model = deepcopy(lab.model).double()
    source, target = ragged_batch()
    tap = compile_interventions(specs, model)
    expected = model(source, target, tap=tap)[target != 0]
    model.to(GPU)
    tap = compile_interventions(specs, model)
    within(model(source.to(GPU), target.to(GPU), tap=tap).cpu()[target != 0], expected, 1e-10)


def stepper_of(state: TrainState, precision: Precision = "float32", **changes: Any) -> Stepper:
    state.model.train()
    return Stepper(
        state, settings(**changes), tokenizer(), precision, clock=lambda: 0.0, smoothing=losses.Smoothing(0.1)
    )


def stepped(stepper: Stepper, steps: int = 4) -> list[float]:
    """The losses of some steps."""
    stream = BatchStream(corpus().train, tokenizer(), batch_tokens=64, seed=0, max_length=32)
    batches = iter(list(islice(stream, 2 * steps)))
    for _ in range(steps):
        stepper.step(batches)
    return [event.loss for event in stepper.read()]


@contextmanager
def no_waiting() -> Iterator[None]:
    """A block in which waiting for the device is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls the switch a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize(("optimizer", "tolerance"), [("adamw", 1e-4), ("muon", 3e-2)])  # Muon iterates in bfloat16
def test_losses_of_training_are_those_of_the_cpu(optimizer, tolerance, accumulate):
    options = dict(optimizer=optimizer, accumulate=accumulate, weight_decay=0.1)
    config = replace(MODEL, dropout=0.0, embedding_dropout=0.0)
    expected, found = (
        stepped(stepper_of(new_state(config, settings(**options), device), **options)) for device in (CPU, GPU)
    )
    assert found == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_step_never_waits_for_the_device(precision, optimizer):
    state = new_state(MODEL, settings(), GPU)
    stepper = stepper_of(state, precision, optimizer=optimizer)
    first = stepped(stepper)
    stream = BatchStream(corpus().train, tokenizer(), batch_tokens=64, seed=0, max_length=32)
    with no_waiting():
        stepper.step(iter(stream))
    assert all(0 < loss < 10 for loss in [*first, stepper.read()[0].loss])


def test_waiting_is_noticed():
    with pytest.raises(RuntimeError, match="synchroniz"), no_waiting():
        torch.ones(2, device=GPU).sum().item()


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_state_saved_on_the_gpu_goes_on_on_the_cpu_and_back(optimizer):
    config = settings(optimizer=optimizer)
    state = new_state(MODEL, config, GPU)
    stepped(stepper_of(state, optimizer=optimizer))
    tensors, facts = state.tensors(), state.facts()
    assert all(tensor.device == CPU for tensor in tensors.values())
    for device in (CPU, GPU):
        copy = restored_state(MODEL, config, device, tensors, facts)
        assert copy.step == 4
        saved = copy.tensors()
        assert all(torch.equal(saved[name], tensor) for name, tensor in tensors.items() if name in saved)
        stepped(stepper_of(copy, optimizer=optimizer), steps=1)
        assert copy.step == 5


def test_an_evaluation_gives_the_scores_of_the_cpu():
    state = new_state(MODEL, settings(), GPU)
    stepped(stepper_of(state))
    on_gpu = evaluate(state.model, corpus().validation, tokenizer())
    on_cpu = evaluate(state.model.cpu(), corpus().validation, tokenizer())
    assert on_gpu.loss == pytest.approx(on_cpu.loss, rel=1e-5)
    assert on_gpu.translations == on_cpu.translations


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 2e-2)], ids=str)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_the_loss_by_chunks_is_that_of_all_logits(monkeypatch, dtype, tolerance, compiled):
    monkeypatch.setattr(losses, "_CHUNK_OF_GPU", 2**22)  # three chunks, the last of fewer rows
    leaves = [torch.randn(n, 64, device=GPU).div(4).requires_grad_() for n in (300, 40_000)]
    targets = torch.randint(40_000, (300,), device=GPU)
    results = []
    for is_chunked in (True, False):
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            if is_chunked:
                loss = losses.projected_cross_entropy(*leaves, targets, losses.Smoothing(0.1), compiled=compiled)
            else:
                loss = losses.smoothed_cross_entropy(F.linear(*leaves), targets, losses.Smoothing(0.1))
        results.append((loss.detach(), *torch.autograd.grad(loss, leaves)))
    for found, expected in zip(*results, strict=True):
        assert (found - expected).norm() <= tolerance * expected.norm()


def test_a_compiled_training_step_gives_the_losses_of_an_eager_one():
    config = replace(MODEL, dropout=0.0, embedding_dropout=0.0)
    expected, found = (
        stepped(stepper_of(new_state(config, settings(), GPU), compile=is_compiled)) for is_compiled in (False, True)
    )
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("build", EVERY_BUILD)
def test_a_run_at_work_is_watched_as_on_the_cpu(build):
    model = EVERY_BUILD[build](torch.float64, vocab_size=tokenizer().vocab_size)
    expected = live_output(model, tokenizer(), "a b c d", 3)
    found = live_output(model.to(GPU), tokenizer(), "a b c d", 3)
    assert found.tokens == expected.tokens
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-6)
    np.testing.assert_array_equal(found.mask, expected.mask)
