import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from transformer.model.attention import MultiHeadAttention, explicit_attention, fused_attention, masked_softmax
from transformer.model.masks import AttentionMask
from transformer.model.taps import Address, Recorder, Site

sizes = st.integers(1, 7)


@st.composite
def problems(draw):
    """q, k, v and a mask [batch 1 query key] in which some rows may see nothing."""
    batch, head, query, key, d_head = (draw(sizes) for _ in range(5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    q = torch.randn(batch, head, query, d_head, generator=generator)
    k, v = (torch.randn(batch, head, key, d_head, generator=generator) for _ in range(2))
    mask = torch.rand(batch, 1, query, key, generator=generator) < draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
    return q, k, v, mask


def reference(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Equation 1 in float64, one query at a time over its allowed keys only."""
    weights = torch.zeros(*q.shape[:3], k.size(2), dtype=torch.float64)
    for b in range(q.size(0)):
        for h in range(q.size(1)):
            for i in range(q.size(2)):
                allowed = mask[b, 0, i].nonzero()[:, 0].tolist()
                terms = {
                    j: math.exp(float(q[b, h, i].double() @ k[b, h, j].double()) / math.sqrt(q.size(3)))
                    for j in allowed
                }
                for j in allowed:
                    weights[b, h, i, j] = terms[j] / sum(terms.values())
    return weights, weights @ v.double()


@given(problems())
def test_both_paths_are_equation_1_over_the_allowed_keys(problem):
    q, k, v, mask = problem
    recorder = Recorder()
    explicit = explicit_attention(q, k, v, mask, address=Address("encoder", 0, "self"), tap=recorder)
    weights, context = reference(q, k, v, mask)
    # float32 rounding of at most 7 terms of size about 3
    assert (recorder.recording["encoder.0.self.weights"] - weights).abs().max() <= 1e-6
    assert (explicit - context).abs().max() <= 5e-6
    assert (fused_attention(q, k, v, mask) - context).abs().max() <= 5e-6


@given(problems())
def test_fused_equals_explicit_in_values_and_gradients(problem):
    *qkv, mask = problem
    results = []
    for attention in (explicit_attention, fused_attention):
        leaves = [x.clone().requires_grad_() for x in qkv]
        output = attention(*leaves, mask)
        pull = torch.linspace(-1, 1, output.numel()).view_as(output)
        results.append((output.detach(), *torch.autograd.grad((output * pull).sum(), leaves)))
    for explicit, fused in zip(*results, strict=True):
        assert torch.isfinite(explicit).all() and torch.isfinite(fused).all()
        assert (explicit - fused).abs().max() <= 5e-6


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_fused_equals_explicit_at_real_sizes(within, share):
    q, k, v = (torch.randn(2, 8, 64, 64) for _ in range(3))
    mask = torch.rand(2, 1, 64, 64) < share
    mask[0, 0, :5] = False
    within(fused_attention(q, k, v, mask), explicit_attention(q, k, v, mask), 5e-6)
    within(fused_attention(*(x.double() for x in (q, k, v)), mask), reference(q, k, v, mask)[1], 1e-12)


def test_fused_equals_explicit_in_bfloat16(within):
    q, k, v = (torch.randn(2, 4, 32, 32).bfloat16() for _ in range(3))
    mask = torch.rand(2, 1, 32, 32) < 0.6
    within(fused_attention(q, k, v, mask), explicit_attention(q, k, v, mask), 2e-2)


@pytest.mark.parametrize("attention", [explicit_attention, fused_attention])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_fully_masked_row_is_zero_with_finite_gradients(attention, dtype):
    q, k, v = (torch.randn(2, 2, 4, 8, dtype=dtype, requires_grad=True) for _ in range(3))
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    mask[0], mask[1, 0, 2] = False, False
    output = attention(q, k, v, mask)
    assert (output[0] == 0).all() and (output[1, :, 2] == 0).all()
    assert (output[1, :, [0, 1, 3]] != 0).all()
    output.sum().backward()
    for x in (q, k, v):
        assert torch.isfinite(x.grad).all()
        assert (x.grad[0] == 0).all()
    assert (q.grad[1, :, 2] == 0).all()


@given(problems())
def test_rows_of_weights_sum_to_one_and_masked_cells_are_exactly_zero(problem):
    q, k, _, mask = problem
    weights = masked_softmax(q @ k.transpose(-2, -1) * 20, mask)
    cells = mask.expand_as(weights)
    assert (weights[~cells] == 0).all()
    sums, seen = weights.sum(-1), cells.any(-1)
    assert (sums[~seen] == 0).all()
    assert ((sums[seen] - 1).abs() <= 1e-6).all()


@pytest.mark.parametrize("attention", [explicit_attention, fused_attention])
def test_what_stands_behind_a_mask_changes_nothing_at_all(attention):
    q, k, v = (torch.randn(2, 3, 6, 8) for _ in range(3))
    mask = torch.rand(2, 1, 1, 6) < 0.5
    hidden = ~mask.transpose(-2, -1)
    other_k, other_v = k.masked_fill(hidden, 1e4), v.masked_fill(hidden, -1e30)
    assert torch.equal(attention(q, k, v, mask), attention(q, other_k, other_v, mask))


@pytest.mark.parametrize("attention", [explicit_attention, fused_attention])
def test_the_order_of_keys_does_not_matter(attention, within):
    q, k, v = (torch.randn(2, 3, 6, 8, dtype=torch.float64) for _ in range(3))
    mask = torch.rand(2, 1, 6, 6) < 0.6
    order = torch.randperm(6)
    within(attention(q, k[:, :, order], v[:, :, order], mask[..., order]), attention(q, k, v, mask), 1e-12)


@pytest.mark.parametrize("rate", [0.25, 0.6])
@pytest.mark.parametrize("attention", [explicit_attention, fused_attention])
def test_dropout_falls_on_the_weights_and_scales_the_rest(attention, rate):
    length = 64
    q, k = (torch.randn(4, 4, length, length) for _ in range(2))
    v = torch.eye(length).expand(4, 4, length, length)  # so that the output is the weights
    mask = torch.ones(1, 1, 1, length, dtype=torch.bool)
    kept, dropped = attention(q, k, v, mask), attention(q, k, v, mask, dropout=rate)
    gone = dropped == 0
    assert torch.allclose(dropped[~gone], kept[~gone] / (1 - rate), rtol=1e-4)
    # 65,536 draws: four standard deviations
    assert gone.double().mean().item() == pytest.approx(rate, abs=4 * math.sqrt(rate * (1 - rate) / gone.numel()))


def test_head_i_owns_its_columns_and_w_o_mixes_the_heads(within):
    attention = MultiHeadAttention(12, 3, dropout=0.0, address=Address("encoder", 0, "self")).double()
    for projection in (attention.query, attention.key, attention.value, attention.output):
        torch.nn.init.normal_(projection.bias)
    x, recorder = torch.randn(2, 5, 12, dtype=torch.float64), Recorder()
    mask = torch.ones(1, 1, 1, 5, dtype=torch.bool)
    output = attention(x, None, AttentionMask.of(mask, x.dtype), tap=recorder)
    seen = recorder.recording
    for name, projection in (("q", attention.query), ("k", attention.key), ("v", attention.value)):
        for head in range(3):
            columns = slice(4 * head, 4 * head + 4)
            expected = x @ projection.weight[columns].T + projection.bias[columns]
            within(seen[Site("encoder", 0, "self", name)][:, head], expected.detach(), 1e-12)
    joined = torch.cat(list(seen["encoder.0.self.heads"].unbind(1)), dim=-1)
    within(output.detach(), (joined @ attention.output.weight.T + attention.output.bias).detach(), 1e-12)


def test_a_tap_may_give_each_head_a_mask_of_its_own():
    def second_head_sees_the_first_key_only(site: Site, tensor: Tensor) -> Tensor:
        if site.tensor != "mask":
            return tensor
        per_head = tensor.repeat(1, 2, 1, 1)
        per_head[:, 1, :, 1:] = False
        return per_head

    q, k, v = (torch.randn(1, 2, 3, 4) for _ in range(3))
    mask = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    address = Address("encoder", 0, "self")
    output = explicit_attention(q, k, v, mask, address=address, tap=second_head_sees_the_first_key_only)
    assert torch.equal(output[:, 1], v[:, 1, :1].expand(1, 3, 4))
    assert torch.equal(output[:, 0], explicit_attention(q, k, v, mask)[:, 0])


def test_the_scores_tap_cannot_unmask():
    def louder(site: Site, tensor: Tensor) -> Tensor:
        return tensor + 1e6 if site.tensor == "scores" else tensor

    recorder = Recorder()
    mask = torch.tensor([[[[True, False], [True, True]]]])
    q, k, v = (torch.randn(1, 1, 2, 4) for _ in range(3))
    plain = explicit_attention(q, k, v, mask, address=Address("decoder", 0, "self"), tap=recorder)
    tapped = explicit_attention(q, k, v, mask, address=Address("decoder", 0, "self"), tap=louder)
    assert recorder.recording["decoder.0.self.weights"][0, 0, 0].tolist() == [1, 0]
    assert torch.equal(plain[0, 0, 0], tapped[0, 0, 0])
