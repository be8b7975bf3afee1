"""Tests that need a GPU; skipped, with a reason, where there is none."""

import pytest
import torch
from random_models import half_trained_model, ragged_batch, random_model, reversals
from torch.nn import functional as F

from transformer.decoding.greedy import translate_ids
from transformer.model.attention import explicit_attention, fused_attention
from transformer.model.taps import Recorder

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; this machine has none"),
]
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
