"""Oracle: torch.nn.Transformer with our weights. Its masks are True = blocked, and it has no embeddings."""

import math

import pytest
import torch
from random_models import TINY, ragged_batch, random_model
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.model.attention import MultiHeadAttention
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer

TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": F.silu}

# Two warnings of torch's own about its inference path, not about anything that is asked of it here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning"),
]


class TorchTransformer(nn.Module):
    """torch.nn.Transformer between an embedding and a projection written out from the paper's formulas."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        c = ours.config
        self.config = c
        self.core = nn.Transformer(
            d_model=c.d_model,
            nhead=c.n_heads,
            num_encoder_layers=c.n_encoder_layers,
            num_decoder_layers=c.n_decoder_layers,
            dim_feedforward=c.d_ff,
            dropout=0.0,
            activation=ACTIVATIONS[c.activation],
            layer_norm_eps=c.norm_epsilon,
            batch_first=True,
            norm_first=c.norm == "pre",
        )
        if c.norm == "post":
            self.core.encoder.norm = self.core.decoder.norm = None
        else:
            copy_norm(self.core.encoder.norm, ours.encoder.norm)
            copy_norm(self.core.decoder.norm, ours.decoder.norm)
        for theirs, layer in zip(self.core.encoder.layers, ours.encoder.layers, strict=True):
            copy_attention(theirs.self_attn, layer.self_attention)
            copy_linear(theirs.linear1, layer.feed_forward.inner)
            copy_linear(theirs.linear2, layer.feed_forward.outer)
            copy_norm(theirs.norm1, layer.add_norm_self.norm)
            copy_norm(theirs.norm2, layer.add_norm_ffn.norm)
        for theirs, layer in zip(self.core.decoder.layers, ours.decoder.layers, strict=True):
            copy_attention(theirs.self_attn, layer.self_attention)
            copy_attention(theirs.multihead_attn, layer.cross_attention)
            copy_linear(theirs.linear1, layer.feed_forward.inner)
            copy_linear(theirs.linear2, layer.feed_forward.outer)
            copy_norm(theirs.norm1, layer.add_norm_self.norm)
            copy_norm(theirs.norm2, layer.add_norm_cross.norm)
            copy_norm(theirs.norm3, layer.add_norm_ffn.norm)
        self.source = nn.Parameter(ours.encoder.embedding.tokens.weight.detach().clone())
        self.target = nn.Parameter(ours.decoder.embedding.tokens.weight.detach().clone())
        self.output = nn.Parameter(ours.projection.weight.detach().clone())
        self.to(self.output.dtype)

    def forward(self, source: Tensor, target: Tensor, source_real: Tensor, target_real: Tensor) -> Tensor:
        length = target.size(1)
        states = self.core(
            self.embed(self.source, source),
            self.embed(self.target, target),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=~source_real,
            tgt_key_padding_mask=~target_real,
            memory_key_padding_mask=~source_real,
        )
        return states @ self.output.T

    def embed(self, table: Tensor, ids: Tensor) -> Tensor:
        d_model, length = self.config.d_model, ids.size(1)
        positions = torch.zeros(length, d_model, dtype=torch.float64)
        for position in range(length):
            for column in range(d_model):
                angle = position / 10_000 ** (2 * (column // 2) / d_model)
                positions[position, column] = math.cos(angle) if column % 2 else math.sin(angle)
        # The model keeps its table in float32, also when its weights are float64.
        return table[ids] * math.sqrt(d_model) + positions.float().to(table.dtype)


@torch.no_grad()
def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    joined = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.data = torch.cat([linear.weight for linear in joined])
    theirs.in_proj_bias.data = torch.cat([linear.bias for linear in joined])
    copy_linear(theirs.out_proj, ours.output)


def copy_linear(theirs: nn.Linear, ours: nn.Linear) -> None:
    theirs.weight.data, theirs.bias.data = ours.weight.data.clone(), ours.bias.data.clone()


copy_norm = copy_linear


def compare(ours: Transformer, theirs: TorchTransformer, tap=None) -> tuple[Tensor, Tensor]:
    """Both models' logits at the real target positions of a ragged batch."""
    source, target = ragged_batch()
    source_real, target_real = source != 0, target != 0
    return (
        ours(source, target, tap=tap)[target_real],
        theirs(source, target, source_real, target_real)[target_real],
    )


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_logits_equal_torch_nn_transformer(within, norm, activation, dtype, training):
    ours = random_model(dtype, norm=norm, activation=activation)
    theirs = TorchTransformer(ours)
    ours.train(training)
    theirs.train(training)
    with torch.set_grad_enabled(training):
        logits, expected = compare(ours, theirs)
    within(logits, expected, TOLERANCES[dtype])
    with torch.set_grad_enabled(training):
        explicit, expected = compare(ours, theirs, tap=Recorder())
    within(explicit, expected, TOLERANCES[dtype])


def test_torch_s_inference_path_is_really_compared(monkeypatch):
    calls, fast = [], torch._transformer_encoder_layer_fwd
    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *a: calls.append(1) or fast(*a))
    ours = random_model()
    with torch.no_grad():
        compare(ours, TorchTransformer(ours).eval())
    assert len(calls) == ours.config.n_encoder_layers


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("tap", [None, Recorder(lambda site: False)], ids=["fused", "explicit"])
def test_gradients_of_every_weight_equal_torch_s(within, norm, tap):
    ours = random_model(torch.float64, norm=norm, tie_embeddings=False, tie_output=False).train()
    theirs = TorchTransformer(ours)
    logits, expected = compare(ours, theirs, tap)
    pull = torch.randn_like(logits)
    (logits * pull).sum().backward()
    (expected * pull).sum().backward()
    within(ours.projection.weight.grad, theirs.output.grad, 1e-11)
    within(ours.encoder.embedding.tokens.weight.grad, theirs.source.grad, 1e-11)
    within(ours.decoder.embedding.tokens.weight.grad, theirs.target.grad, 1e-11)
    reached = 3
    for mine, other in zip(
        (*ours.encoder.layers, *ours.decoder.layers),
        (*theirs.core.encoder.layers, *theirs.core.decoder.layers),
        strict=True,
    ):
        sublayers = [(mine.self_attention, other.self_attn)]
        if hasattr(mine, "cross_attention"):
            sublayers.append((mine.cross_attention, other.multihead_attn))
        for attention, expected_attention in sublayers:
            joined = (attention.query, attention.key, attention.value)
            within(torch.cat([x.weight.grad for x in joined]), expected_attention.in_proj_weight.grad, 1e-11)
            within(torch.cat([x.bias.grad for x in joined]), expected_attention.in_proj_bias.grad, 1e-11)
            within(attention.output.weight.grad, expected_attention.out_proj.weight.grad, 1e-11)
            reached += 8
        within(mine.feed_forward.inner.weight.grad, other.linear1.weight.grad, 1e-11)
        within(mine.feed_forward.outer.bias.grad, other.linear2.bias.grad, 1e-11)
        reached += 4
        norms = [module for module in mine.modules() if isinstance(module, nn.LayerNorm)]
        for norm_layer, name in zip(norms, ("norm1", "norm2", "norm3"), strict=False):
            within(norm_layer.weight.grad, getattr(other, name).weight.grad, 1e-11)
            within(norm_layer.bias.grad, getattr(other, name).bias.grad, 1e-11)
            reached += 2
    final = 4 if norm == "pre" else 0
    assert reached + final == len(list(ours.parameters()))


def test_any_pattern_of_hidden_source_tokens_agrees(within):
    ours = random_model(torch.float64)
    theirs = TorchTransformer(ours).eval()
    source, target = ragged_batch()
    source[source == 0], target[target == 0] = 5, 6
    source_real = torch.rand(source.shape) < 0.5
    source_real[:, 3] = True
    target_real = torch.ones_like(target, dtype=torch.bool)
    logits = ours(source, target, source_real)
    within(logits.detach(), theirs(source, target, source_real, target_real).detach(), 1e-12)


@pytest.mark.parametrize("wrong", ["a final norm", "another norm order"])
def test_the_comparison_notices_a_wrong_mapping(wrong):
    """The weights are random because with gains of 1 and biases of 0 these mappings would pass within 1e-4."""
    ours = random_model(torch.float64)
    theirs = TorchTransformer(ours).eval()
    layer = theirs.core.decoder.layers[0]
    if wrong == "a final norm":
        theirs.core.decoder.norm = theirs.core.decoder.layers[-1].norm3
    else:
        layer.norm1, layer.norm2 = layer.norm2, layer.norm1
    logits, expected = compare(ours, theirs)
    assert (logits - expected).abs().max() > 1e-2


def test_the_numbers_of_encoder_and_decoder_layers_are_their_own(within):
    for encoder, decoder in ((1, 4), (3, 1)):
        ours = random_model(torch.float64, n_encoder_layers=encoder, n_decoder_layers=decoder)
        logits, expected = compare(ours, TorchTransformer(ours).eval())
        within(logits.detach(), expected.detach(), 1e-12)
        assert (len(ours.encoder.layers), len(ours.decoder.layers)) == (encoder, decoder)
    assert TINY["n_encoder_layers"] != TINY["n_decoder_layers"]
