"""The encoder where nobody looks, in fewer calls."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from transformer.decoding.laid_out import LaidOut
from transformer.decoding.plain_parts import Plan, places
from transformer.model.attention import MultiHeadAttention, fused_attention
from transformer.model.kinds import AttentionKind
from transformer.model.masks import AttentionMask, combine, open_to
from transformer.model.positions import AlibiPositions, RotaryPositions
from transformer.model.seq2seq import check_length
from transformer.model.transformer import Transformer


@torch.no_grad()
def encode(
    model: Transformer, weights: LaidOut, plan: Plan, source: Int[Tensor, "source length"], mask: AttentionMask
) -> Float[Tensor, "source length d_model"]:
    """The memory that `Transformer.encode` gives; the weights and the plan are of this model, `mask` hides padding."""
    check_length(model.config, source.size(1), "source")
    rules = open_to(model.config, AttentionKind.ENCODER_SELF, *(source.size(1),) * 2, device=source.device)
    if rules is not None:
        mask = AttentionMask.of(combine(mask.allowed, rules), model.projection.weight.dtype)
    x = F.embedding(source, weights.source_vectors)
    terms, shape = places(model.encoder.embedding, plan.source_carried, source.size(1)), x.shape
    x = (x if terms is None else x + terms).flatten(0, 1)  # -> [source*length d_model]
    for layer, laid in zip(plan.source_layers, weights.source_layers, strict=True):
        qkv = layer.own.open(x).view(*shape[:2], 3, laid.self_attention.n_heads, -1)
        x = layer.own.close(x, _gathered(laid.self_attention, qkv, mask).reshape(x.shape))
        x = layer.ffn.close(x, layer.activation(layer.ffn.open(x)))
    return (x if weights.source_norm is None else weights.source_norm(x)).view(shape)


def _gathered(
    attention: MultiHeadAttention, qkv: Float[Tensor, "source length 3 head d_head"], mask: AttentionMask
) -> Float[Tensor, "source length head d_head"]:
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()  # -> [source head length d_head] each
    relative, bias = attention.relative, None
    if isinstance(relative, RotaryPositions):
        q, k = relative(q, 0), relative(k, 0)
    elif isinstance(relative, AlibiPositions):
        bias = relative(q.size(2), q.size(2))
    return fused_attention(q, k, v, mask, bias=bias, scale=attention.score.fused_scale).transpose(1, 2)
