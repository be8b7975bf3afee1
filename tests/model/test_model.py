import math
import subprocess
import sys
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise
from typing import Any, get_args

import pytest
import torch
from random_models import TINY, ragged_batch, random_ids, random_model, staircase
from torch.nn import functional as F

from transformer.config import PRESETS, Activation, ModelConfig, NormPlacement, PositionKind
from transformer.model import attention
from transformer.model.taps import Recorder, chain
from transformer.model.transformer import Transformer, parameter_count

NOTHING = Recorder(lambda site: False)  # takes the explicit path and keeps nothing
PATHS = pytest.mark.parametrize("tap", [None, NOTHING], ids=["fused", "explicit"])
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
DTYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=str)


@PATHS
@NORMS
@pytest.mark.parametrize("length", range(1, 33))
@torch.no_grad()
def test_future_tokens_never_change_past_logits(length, norm, tap):
    model = random_model(norm=norm)
    source = random_ids(1, 6).expand(length, 6)
    target = random_ids(1, length).expand(length, length)
    earlier = torch.ones(length, length, dtype=torch.bool).tril(-1)  # row r keeps its first r tokens
    changed = torch.where(earlier, target, 4 + (target - 4 + torch.randint(1, 19, target.shape)) % 19)
    difference = (model(source, target, tap=tap) - model(source, changed, tap=tap)).abs().amax(dim=-1)
    assert (difference[earlier] == 0).all()
    assert (difference[torch.eye(length, dtype=torch.bool)] > 0).all()


@PATHS
@NORMS
@DTYPES
@torch.no_grad()
def test_twenty_columns_of_padding_move_nothing(within, norm, tap, dtype, tolerance):
    model = random_model(dtype, norm=norm)
    source, target = ragged_batch()
    real = target != 0
    logits = model(source, target, tap=tap)[real]
    wider_source, wider_target = F.pad(source, (0, 20)), F.pad(target, (0, 20))
    within(model(wider_source, wider_target, tap=tap)[:, : target.size(1)][real], logits, tolerance)
    # Nor does it matter which ids stand in the padding when a mask says what is real.
    rubbish = [torch.where(ids == 0, random_ids(*ids.shape), ids) for ids in (wider_source, wider_target)]
    masked = model(*rubbish, wider_source != 0, wider_target != 0, tap=tap)
    within(masked[:, : target.size(1)][real], logits, tolerance)


@PATHS
@DTYPES
@torch.no_grad()
def test_a_row_is_the_same_alone_and_in_a_batch(within, tap, dtype, tolerance):
    model = random_model(dtype)
    source, target = ragged_batch()
    together = model(source, target, tap=tap)
    for row in range(3):
        n_source, n_target = int((source[row] != 0).sum()), int((target[row] != 0).sum())
        alone = model(source[row : row + 1, :n_source], target[row : row + 1, :n_target], tap=tap)
        within(together[row : row + 1, :n_target], alone, tolerance)


@NORMS
@DTYPES
@torch.no_grad()
def test_the_two_attention_paths_give_the_same_logits(within, norm, dtype, tolerance):
    model = random_model(dtype, norm=norm)
    source, target = ragged_batch()
    source_mask = source != 0
    source_mask[2] = False  # no source at all: fully masked in the encoder and in cross-attention
    fused, explicit = (model(source, target, source_mask, tap=tap) for tap in (None, NOTHING))
    within(fused, explicit, tolerance)


@PATHS
@NORMS
def test_gradients_are_finite_where_a_source_is_fully_masked(norm, tap):
    model = random_model(norm=norm).train()
    source, target = ragged_batch()
    source_mask = source != 0
    source_mask[1] = False
    logits = model(source, target, source_mask, tap=tap)
    F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        # A key's bias shifts all scores of a query alike, which softmax ignores.
        assert (parameter.grad != 0).any() or name.endswith("key.bias"), name


@pytest.mark.parametrize(
    ("name", "vocab_size"),
    [
        ("tiny", 40),
        ("small", 40),
        ("medium", 40),
        ("tiny", 4_000),
        ("medium", 1_000),
        pytest.param("paper-base", 37_000, marks=pytest.mark.slow),
    ],
)
@NORMS
@torch.no_grad()
def test_the_first_loss_is_within_1_of_ln_v(request, name, vocab_size, norm):
    model = Transformer(replace(PRESETS[name], vocab_size=vocab_size, norm=norm)).eval()
    source, target = random_ids(8, 20, vocab_size), random_ids(8, 21, vocab_size)
    target[:, 0] = 1
    logits = model(source, target[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()).item()
    request.node.user_properties.append(("above_ln_v", loss - math.log(vocab_size)))
    assert abs(loss - math.log(vocab_size)) < 1


@pytest.mark.parametrize("tie_embeddings", [True, False])
@pytest.mark.parametrize("tie_output", [True, False])
def test_every_tie_is_optional(tie_embeddings, tie_output):
    model = random_model(tie_embeddings=tie_embeddings, tie_output=tie_output)
    source, target = model.encoder.embedding.tokens.weight, model.decoder.embedding.tokens.weight
    assert (source is target) == tie_embeddings
    assert (model.projection.weight is target) == tie_output
    tables = 1 + (not tie_embeddings) + (not tie_output)
    layers = sum(p.numel() for stack in (model.encoder, model.decoder) for p in stack.layers.parameters())
    assert model.n_parameters() == layers + tables * TINY["vocab_size"] * TINY["d_model"]


SIZES = dict(vocab_size=23, d_model=16, n_heads=4, d_ff=24, max_length=12, n_encoder_layers=2, n_decoder_layers=3)
BUILT = [
    {name: value}
    for name, values in {
        "positions": get_args(PositionKind),
        "norm": get_args(NormPlacement),
        "activation": get_args(Activation),
        **dict.fromkeys(("causal_mask", "scale_scores", "residual", "output_bias"), (True, False)),
        **dict.fromkeys(("tie_embeddings", "tie_output"), (True, False)),
    }.items()
    for value in values
]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(*two, marks=[pytest.mark.slow] * (two[0] != two[1]))
        for two in combinations_with_replacement(BUILT, 2)
    ],
)
def test_parameters_are_counted_without_a_model(one, other):
    config = ModelConfig(**{**SIZES, **one, **other})
    assert parameter_count(config) == Transformer(config).n_parameters()


@pytest.mark.slow
def test_counting_the_parameters_of_the_presets_imports_nothing():
    code = (
        "import sys; from transformer.config import PRESETS; "
        "from transformer.model.transformer import parameter_count; "
        "loaded = set(sys.modules); print(*map(parameter_count, PRESETS.values())); "
        "print(len(set(sys.modules) - loaded), 'sympy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    with torch.device("meta"):
        counts = [str(Transformer(config).n_parameters()) for config in PRESETS.values()]
    assert done.stdout.split() == [*counts, "0", "False"]


@pytest.mark.parametrize(("encoder", "decoder"), [(1, 3), (4, 1)])
def test_encoder_and_decoder_have_their_own_numbers_of_layers(encoder, decoder):
    model = random_model(n_encoder_layers=encoder, n_decoder_layers=decoder)
    layers = {(site.stack, site.layer) for site in model.sites() if site.layer is not None}
    assert layers == {("encoder", i) for i in range(encoder)} | {("decoder", i) for i in range(decoder)}


@torch.no_grad()
def test_embeddings_are_scaled_by_the_root_of_d_model_and_positions_are_not(within):
    model = random_model()
    source, target = ragged_batch()
    recorder = Recorder()
    model(source, target, tap=recorder)
    seen = recorder.recording
    within(seen["encoder.embedding"], model.projection.weight[source] * 4, 1e-6)
    within(seen["decoder.embedding"], model.projection.weight[target] * 4, 1e-6)
    within(seen["decoder.0.self.input"], seen["decoder.embedding"] + seen["decoder.positions"], 0)


def test_the_pad_id_of_the_config_is_what_is_hidden(within):
    model = random_model(pad_id=3)
    source, target = ragged_batch()
    source, target = source.masked_fill(source == 0, 3), target.masked_fill(target == 0, 3)
    with torch.no_grad():
        within(model(source, target), model(source, target, source != 3, target != 3), 0)


@torch.no_grad()
def test_projecting_some_positions_gives_their_logits(within):
    model = random_model()
    source, target = ragged_batch()
    real = target != 0
    states = model.decode(target, model.encode(source), source != 0)
    within(model.project(states[real]), model(source, target)[real], 1e-6)


def test_the_tests_check_shapes(request: pytest.FixtureRequest):
    if not request.config.getoption("--check-shapes"):
        pytest.skip("shapes are checked by `make test-slow`")
    with pytest.raises(Exception, match="Type-check error"):
        random_model()(random_ids(2, 5), random_ids(3, 5))


def test_the_decoder_s_masks_are_causal_and_hide_padding():
    model, recorder = random_model(), Recorder()
    source, target = ragged_batch()
    with torch.no_grad():
        model(source, target, tap=recorder)
    expected = (target != 0)[:, None, None, :] & staircase(7, 7)
    assert torch.equal(recorder.recording["decoder.2.self.mask"], expected)
    assert torch.equal(recorder.recording["decoder.2.cross.mask"][:, 0, 6], source != 0)
    assert torch.equal(recorder.recording["encoder.1.self.mask"][:, 0, 8], source != 0)


# Dropout. Pre-norm and wide enough to count: what a block adds to the residual stream can be read off the stream.

RATE = 0.3
WIDE: dict[str, Any] = dict(d_model=64, d_ff=64, norm="pre", n_encoder_layers=2, n_decoder_layers=2)
DROPOUTS = ("dropout", "embedding_dropout", "attention_dropout", "activation_dropout")


def long_batch():
    return random_ids(4, 32), random_ids(4, 32)


def record(model, tap=None):
    recorder = Recorder()
    source, target = long_batch()
    with torch.no_grad():
        model(source, target, tap=chain(tap, recorder))
    return recorder.recording


def assert_dropped(after, before, rate):
    """Each cell is either gone or scaled by 1 / (1 - rate), in the right proportion."""
    gone = (after.abs() < 1e-7) & (before.abs() > 1e-4)
    kept = (after - before / (1 - rate)).abs() < 1e-4
    assert (gone | kept | (before.abs() <= 1e-4)).all()
    share = gone.sum().item() / (before.abs() > 1e-4).sum().item()
    assert share == pytest.approx(rate, abs=0.05)


def first_difference(model):
    """The first site at which two passes with other random numbers differ, or None."""
    first, second = Recorder(), Recorder()
    source, target = long_batch()
    with torch.no_grad():
        model(source, target, tap=first)
        model(source, target, tap=second)
    return next((str(s) for s in model.sites() if not torch.equal(first.recording[s], second.recording[s])), None)


@pytest.mark.parametrize(
    ("rate", "site"),
    [
        ("embedding_dropout", "encoder.0.self.input"),
        ("attention_dropout", "encoder.0.self.heads"),
        ("dropout", "encoder.0.ffn.input"),
        ("activation_dropout", "encoder.0.ffn.output"),
    ],
)
def test_each_dropout_starts_at_its_own_place_and_only_in_training(rate, site):
    model = random_model(**WIDE, **{rate: RATE})
    assert first_difference(model) is None
    assert first_difference(model.train()) == site


def test_without_dropout_training_is_deterministic():
    assert first_difference(random_model(**WIDE).train()) is None


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_embedding_dropout_falls_on_the_sum_of_embedding_and_position_in_both_stacks(positions):
    seen = record(random_model(**WIDE, positions=positions, embedding_dropout=RATE).train())
    for stack in ("encoder", "decoder"):
        added = seen[f"{stack}.positions"] if positions == "sinusoidal" else 0
        assert_dropped(seen[f"{stack}.0.self.input"], seen[f"{stack}.embedding"] + added, RATE)


@pytest.mark.parametrize("residual", [True, False])
def test_residual_dropout_falls_on_every_sublayer_s_output(residual):
    model = random_model(**WIDE, residual=residual, dropout=RATE).train()
    seen = record(model)
    inputs = [site for site in model.sites() if site.tensor == "input"]
    for site, following in pairwise(inputs):
        if site.stack == following.stack:
            output = seen[replace(site, tensor="output")]
            assert_dropped(seen[following] - (seen[site] if residual else 0), output, RATE)
    assert sum(site.stack == "decoder" for site in inputs) == 6


def test_post_norm_drops_the_output_before_the_sum():
    model = random_model(**{**WIDE, "norm": "post"}, dropout=RATE).train()
    sums = []
    norms = [layer.add_norm_cross.norm for layer in model.decoder.layers]
    for norm in norms:
        norm.register_forward_pre_hook(lambda module, arguments: sums.append(arguments[0]))
    seen = record(model)
    for layer, total in enumerate(sums):
        prefix = f"decoder.{layer}.cross"
        assert_dropped(total - seen[f"{prefix}.input"], seen[f"{prefix}.output"], RATE)
    assert len(sums) == 2


def test_attention_dropout_falls_on_the_weights_of_every_sublayer():
    model = random_model(**WIDE, n_heads=2, attention_dropout=RATE).train()  # d_head is 32, and so are both lengths
    identity = torch.eye(32).expand(4, 2, 32, 32)
    seen = record(model, lambda site, tensor: identity if site.tensor == "v" else tensor)
    sublayers = [site for site in seen if site.tensor == "weights"]
    for site in sublayers:
        assert_dropped(seen[replace(site, tensor="heads")], seen[site], RATE)
    assert len(sublayers) == 2 + 2 * 2


def test_attention_dropout_reaches_the_fused_path_in_training_only(monkeypatch):
    rates = []

    def spy(*qkv, attn_mask, dropout_p, **options):
        rates.append(dropout_p)
        return qkv[2] if qkv[0].shape == qkv[2].shape else qkv[0]

    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", spy)
    model = random_model(attention_dropout=RATE)
    model(*ragged_batch())
    model.train()(*ragged_batch())
    sublayers = 2 + 2 * 3
    assert rates == [0.0] * sublayers + [RATE] * sublayers


@torch.no_grad()
@pytest.mark.parametrize(("activation", "function"), [("relu", F.relu), ("gelu", F.gelu), ("swish", F.silu)])
def test_activation_dropout_falls_after_the_activation_of_every_layer(activation, function):
    model = random_model(**WIDE, activation=activation, activation_dropout=RATE).train()
    layers = [
        (f"{name}.{i}", layer) for name in ("encoder", "decoder") for i, layer in enumerate(getattr(model, name).layers)
    ]
    for _, layer in layers:
        layer.feed_forward.outer.weight.copy_(torch.eye(64))
        layer.feed_forward.outer.bias.zero_()
    seen = record(model)
    for prefix, layer in layers:
        active = function(layer.feed_forward.inner(seen[f"{prefix}.ffn.normed"]))
        assert_dropped(seen[f"{prefix}.ffn.output"], active, RATE)
