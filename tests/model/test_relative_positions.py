"""Rotary and ALiBi: against independent code, and what both promise, that only distance counts."""

import pytest
import torch
import transformers  # which loads its parts when they are asked for
from random_models import ragged_batch, random_ids, random_model, staircase
from torch.nn import functional as F

from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import load_checkpoint, save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.decoding.greedy import greedy, teacher_forced_log_probs
from transformer.model.attention import MultiHeadAttention, explicit_attention, fused_attention
from transformer.model.positions import AlibiPositions, RotaryPositions, alibi_slopes
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer
from transformer.training.state import weights_of

RELATIVE = pytest.mark.parametrize("positions", ["rotary", "alibi"])
NOTHING = Recorder(lambda site: False)
PATHS = pytest.mark.parametrize("tap", [None, NOTHING], ids=["fused", "explicit"])


def test_rotary_turns_queries_and_keys_as_gpt_j_does(within):
    x = torch.randn(2, 3, 40, 16)
    gptj = transformers.models.gptj.modeling_gptj
    sine, cosine = gptj.create_sinusoidal_positions(40, 16)[None].chunk(2, dim=-1)
    expected = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sine, cosine).transpose(1, 2)
    within(RotaryPositions(64, 16)(x, 0), expected, 1e-5)
    within(RotaryPositions(64, 16)(x[:, :, 30:], 30), expected[:, :, 30:], 1e-5)


def test_a_shift_of_all_positions_leaves_rotary_scores_unchanged(within):
    rotary = RotaryPositions(600, 16).double()
    q, k = torch.randn(1, 2, 9, 16).double(), torch.randn(1, 2, 9, 16).double()
    scores = rotary(q, 0) @ rotary(k, 0).transpose(-2, -1)
    for shift in (1, 17, 591):
        # The tables are rounded to float32.
        within(rotary(q, shift) @ rotary(k, shift).transpose(-2, -1), scores, 1e-5)
    assert (rotary(q, 5) @ rotary(k, 0).transpose(-2, -1) - scores).abs().max() > 0.1
    within(rotary(q, 300).norm(dim=-1), q.norm(dim=-1), 1e-6)


@pytest.mark.parametrize(
    ("n_heads", "published"),
    [
        (1, [2**-8]),
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),
        (16, [2 ** (-0.5 * i) for i in range(1, 17)]),
        (12, [*(2.0**-i for i in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_alibi_has_the_published_slopes(n_heads, published):
    assert alibi_slopes(n_heads) == pytest.approx(published, rel=1e-12)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 6, 8, 12, 20])
def test_alibi_is_bloom_s_up_to_what_softmax_ignores(within, n_heads):
    theirs = transformers.models.bloom.modeling_bloom.build_alibi_tensor
    bloom = theirs(torch.ones(1, 10), n_heads, torch.float32).view(1, n_heads, 1, 10)
    causal = staircase(10, 10)
    ours = AlibiPositions(n_heads)(10, 10).masked_fill(~causal, -torch.inf).softmax(dim=-1)
    within(ours, bloom.expand(1, n_heads, 10, 10).masked_fill(~causal, -torch.inf).softmax(dim=-1), 1e-6)


def test_alibi_counts_distance_alike_in_both_directions_and_from_the_last_key():
    bias = AlibiPositions(4)(5, 5)
    assert torch.equal(bias, bias.transpose(-2, -1)) and bias[0, 0].diagonal().abs().max() == 0
    assert bias[0, 0, 1].tolist() == [-0.25, 0, -0.25, -0.5, -0.75]
    assert torch.equal(AlibiPositions(4)(2, 5), bias[:, :, 3:])


@RELATIVE
@PATHS
def test_cross_attention_carries_none(positions, tap):
    model = random_model(positions=positions)
    sublayers = {name: m.relative for name, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    for name, relative in sublayers.items():
        assert (relative is None) == name.endswith("cross_attention"), name
    assert not [site for site in model.sites() if site.tensor == "positions"]
    memory, order = torch.randn(1, 7, 16), torch.randperm(7)
    target, real = random_ids(1, 4), torch.ones(1, 7, dtype=torch.bool)
    with torch.no_grad():
        moved = model.decode(target, memory[:, order], real, tap=tap) - model.decode(target, memory, real, tap=tap)
    assert moved.abs().max() < 1e-5


@RELATIVE
@PATHS
@torch.no_grad()
def test_the_stacks_read_distances_and_nothing_else_of_place(positions, tap):
    """Hidden tokens in front shift all others; where only distance counts, nothing else changes."""
    model = random_model(positions=positions)
    source, target = random_ids(1, 8), random_ids(1, 6)
    front = F.pad(source, (5, 0), value=9), F.pad(target, (5, 0), value=9)
    masks = tuple(F.pad(torch.ones_like(ids, dtype=torch.bool), (5, 0)) for ids in (source, target))
    shifted = model(*front, *masks, tap=tap)[:, 5:]
    plain = model(source, target, tap=tap)
    assert (shifted - plain).abs().max() < 1e-4
    swapped = source[:, [1, 0, *range(2, 8)]]
    assert (model(swapped, target, tap=tap) - plain).abs().max() > 1e-2  # yet order matters
    absolute = random_model(positions="sinusoidal")
    assert (absolute(*front, *masks, tap=tap)[:, 5:] - absolute(source, target, tap=tap)).abs().max() > 1e-2


@RELATIVE
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=str)
@torch.no_grad()
def test_both_attention_paths_agree_masked_rows_included(within, positions, norm, dtype, tolerance):
    model = random_model(dtype, positions=positions, norm=norm)
    source, target = ragged_batch()
    source_mask = source != 0
    source_mask[2] = False
    fused, explicit = (model(source, target, source_mask, tap=tap) for tap in (None, NOTHING))
    within(fused, explicit, tolerance)


@torch.no_grad()
def test_symmetric_alibi_cannot_tell_tokens_from_the_same_in_mirrored_order():
    """Distances are the same read from either end, and cross-attention has no positions to tell the ends apart."""
    source, target = random_ids(2, 9), random_ids(2, 5)
    for positions, blind in (("alibi", True), ("rotary", False), ("sinusoidal", False)):
        model = random_model(torch.float64, positions=positions)
        moved = (model(source.flip(1), target) - model(source, target)).abs().max()
        assert moved < 1e-12 if blind else moved > 1e-3, positions


def test_a_bias_is_added_to_the_scores_on_both_paths(within):
    q, k, v = torch.randn(3, 2, 4, 5, 8).unbind(0)
    bias, mask = torch.randn(1, 4, 5, 5), staircase(5, 5)[None, None]
    expected = ((q @ k.transpose(-2, -1) / 8**0.5 + bias).masked_fill(~mask, -torch.inf)).softmax(-1) @ v
    within(explicit_attention(q, k, v, mask, bias=bias), expected, 1e-6)
    within(fused_attention(q, k, v, mask, bias=bias), expected, 1e-6)


@RELATIVE
@torch.no_grad()
def test_cached_decoding_is_the_same_as_uncached_and_as_teacher_forcing(within, positions):
    model = random_model(positions=positions)
    source = random_ids(3, 9)
    runs = [list(greedy(model, source, max_length=12, cache=cache, record=None)) for cache in (True, False)]
    for cached, whole in zip(*runs, strict=True):
        assert torch.equal(cached.tokens, whole.tokens)
        within(cached.log_probs, whole.log_probs, 1e-5)
    written = torch.stack([step.tokens for step in runs[0]], dim=1)
    forced = teacher_forced_log_probs(model, source[:1], written[:1])
    within(torch.stack([step.log_probs[0] for step in runs[0]]), forced[0], 1e-5)


@RELATIVE
@PATHS
@torch.no_grad()
def test_future_tokens_never_change_past_logits(positions, tap):
    model = random_model(positions=positions)
    source, target = random_ids(1, 5), random_ids(1, 12)
    changed = torch.cat((target[:, :6], random_ids(1, 6)), dim=1)
    assert torch.equal(model(source, target, tap=tap)[:, :6], model(source, changed, tap=tap)[:, :6])


def test_the_tap_is_offered_what_the_scores_are_made_of(within):
    recorder, model = Recorder(), random_model(positions="rotary")
    model(*ragged_batch(), tap=recorder)
    seen = recorder.recording
    q, k, scores = (seen[f"decoder.1.self.{name}"] for name in ("q", "k", "scores"))
    within(scores, q @ k.transpose(-2, -1) / 2, 1e-5)
    recorder, model = Recorder(), random_model(positions="alibi")
    model(*ragged_batch(), tap=recorder)
    q, k, scores = (recorder.recording[f"decoder.1.self.{name}"] for name in ("q", "k", "scores"))
    within(scores - q @ k.transpose(-2, -1) / 2, AlibiPositions(4)(7, 7).expand_as(scores), 1e-5)


@RELATIVE
def test_neither_has_parameters_and_both_are_saved_and_loaded_as_any_model(tmp_path, within, positions):
    tokenizer = corpus_tokenizer(load_corpus("reverse"), CorpusConfig(name="reverse"))
    plain, model = (random_model(vocab_size=tokenizer.vocab_size, positions=kind) for kind in ("none", positions))
    assert plain.state_dict().keys() == model.state_dict().keys()
    assert plain.n_parameters() == model.n_parameters()
    settings = Settings(name="m", model=model.config, train=TrainConfig(), corpus=CorpusConfig(name="reverse"))
    save_checkpoint(tmp_path / "m", settings, tokenizer, weights_of(model))
    loaded = load_checkpoint(tmp_path / "m").model
    assert loaded.config == model.config
    source, target = ragged_batch()
    with torch.no_grad():
        within(loaded(source, target), model(source, target), 0)


def test_other_kinds_start_from_the_same_weights_as_ever():
    """No kind draws random numbers of its own but the learned table."""
    states = {}
    for kind in ("sinusoidal", "none", "rotary", "alibi"):
        torch.manual_seed(3)
        states[kind] = Transformer(
            ModelConfig(vocab_size=20, d_model=16, n_heads=2, d_ff=8, positions=kind)
        ).state_dict()
    for kind in ("none", "rotary", "alibi"):
        assert all(torch.equal(states["sinusoidal"][name], tensor) for name, tensor in states[kind].items()), kind


@RELATIVE
def test_gradients_and_autocast_work(positions):
    model = random_model(positions=positions).train()
    source, target = ragged_batch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(source, target)
        loss = F.cross_entropy(logits.float().flatten(0, 1), target.flatten())
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    exact = model.eval()(source, target)
    assert (logits.float() - exact).abs().max() < 0.05 * exact.abs().max()


def test_an_odd_head_is_refused_for_rotary_positions_alone():
    with pytest.raises(ValueError, match=r"d_model \(12\) gives each of n_heads \(4\) an odd part \(3\)"):
        ModelConfig(d_model=12, n_heads=4, positions="rotary")
    assert ModelConfig(d_model=12, n_heads=4, positions="alibi").d_head == 3
