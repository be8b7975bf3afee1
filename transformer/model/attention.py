"""Attention in two forms, and multi-head attention around them (section 3.2); its scores are in scores.py.

The explicit form is the lesson: every intermediate has a name and a tap may read or rewrite it. The fused form is one
library call and is what training and plain translation take. Tests hold the two equal.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.masks import AttentionMask
from transformer.model.positions import AlibiPositions, RotaryPositions
from transformer.model.scores import Additive, DotProduct, Score
from transformer.model.taps import Address, Tap, touches_attention

SCALED_DOT_PRODUCT = DotProduct()
"""The paper's score, which has no parameters."""
Heads = Float[Tensor, "batch head query d_head"]
Keys = Float[Tensor, "batch head key d_head"]
Bias = Float[Tensor, "1 head query key"]


def explicit_attention(
    q: Heads,
    k: Keys,
    v: Keys,
    mask: Bool[Tensor, "#batch 1 #query #key"],
    *,
    bias: Bias | None = None,
    score: Score = SCALED_DOT_PRODUCT,
    dropout: float = 0.0,
    address: Address | None = None,
    tap: Tap | None = None,
) -> Heads:
    """softmax(score(q, k) + bias) v, each step open to the tap (section 3.2.1, eq. 1; the paper has no bias).

    Scores are offered before the mask and the mask after them, so that a tap can unmask only by changing the mask. A
    fully masked row gives weights and output of exactly 0.
    """

    def offer(name: str, tensor: Tensor) -> Tensor:
        return tensor if address is None else address.offer(tap, name, tensor)

    q, k, v = offer("q", q), offer("k", k), offer("v", v)
    scores = score(q, k)
    scores = offer("scores", scores if bias is None else scores + bias)
    mask = offer("mask", mask.expand(scores.size(0), 1, scores.size(2), scores.size(3)))
    weights = masked_softmax(scores, mask)
    weights = offer("weights", weights)
    return offer("heads", (F.dropout(weights, dropout) if dropout else weights) @ v)


def masked_softmax(
    scores: Float[Tensor, "batch head query key"], mask: Bool[Tensor, " batch #head query key"]
) -> Float[Tensor, "batch head query key"]:
    """The softmax over allowed keys: exactly 0 at masked cells, and in a fully masked row everywhere."""
    # The finite floor keeps a fully masked row's softmax and its gradient finite; the last step sets it to 0.
    hidden, floor = ~mask, torch.finfo(scores.dtype).min
    return scores.masked_fill(hidden, floor).softmax(dim=-1).masked_fill(hidden, 0.0)


def fused_attention(
    q: Heads,
    k: Keys,
    v: Keys,
    mask: AttentionMask | Bool[Tensor, "#batch 1 #query #key"],
    *,
    bias: Bias | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Heads:
    """The same as `explicit_attention` in one library call.

    Backends disagree on a fully masked row (NaN, a mean, or zero), so such a row is let see everything and its output
    is then set to 0.
    """
    mask = mask if isinstance(mask, AttentionMask) else AttentionMask.of(mask, q.dtype)
    attn_mask = _biased(mask.fused, bias)
    if q.device.type == "cpu" and q.dtype == torch.bfloat16:  # ten times as slow as float32 in its backward pass
        wide = None if attn_mask is None else attn_mask.float()
        with torch.autocast("cpu", enabled=False):
            context = F.scaled_dot_product_attention(
                q.float(), k.float(), v.float(), attn_mask=wide, dropout_p=dropout, scale=scale
            )
    else:
        attn_mask = attn_mask if bias is None or attn_mask is None else attn_mask.to(q.dtype)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, dropout_p=dropout, scale=scale)
    return context if mask.blank is None else context.masked_fill(mask.blank, 0.0)


def _biased(fused: Tensor | None, bias: Bias | None) -> Tensor | None:
    if bias is None or fused is None:
        return fused if bias is None else bias
    return bias.masked_fill(~fused, -torch.inf) if fused.dtype == torch.bool else bias + fused


class MultiHeadAttention(nn.Module):
    """h heads of attention side by side, then W_O (section 3.2.2).

    W_Q, W_K, W_V and W_O are d_model x d_model with bias; head i owns columns i * d_head to (i + 1) * d_head - 1.
    Self-attention may be given `relative` positions: queries and keys are then turned before they are offered to a tap
    or kept, or scores lowered before they are offered. A `score` of None is the paper's scaled dot product.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        dropout: float,
        address: Address,
        score: DotProduct | Additive | None = None,
        relative: RotaryPositions | AlibiPositions | None = None,
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.score = DotProduct() if score is None else score
        self.dropout = dropout
        self.address = address
        self.relative = relative
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_model"] | None,
        mask: AttentionMask,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Returns what each query gathered: `x` asks, `memory` answers (None: `x` itself, self-attention)."""
        q, k, v = self._queries_keys_values(x, memory)
        bias = self.relative(q.size(2), k.size(2)) if isinstance(self.relative, AlibiPositions) else None
        dropout = self.dropout if self.training else 0.0
        asking = None if touches_attention(tap) else self.score.fused_queries(q)
        if asking is None:
            heads = explicit_attention(
                q, k, v, mask.allowed, bias=bias, score=self.score, dropout=dropout, address=self.address, tap=tap
            )
        else:
            heads = fused_attention(asking, k, v, mask, bias=bias, scale=self.score.fused_scale, dropout=dropout)
        return self.output(heads.transpose(1, 2).flatten(2))  # [batch head query d_head] -> [batch query d_model]

    @property
    def divisor(self) -> float:
        """The divisor of a score's terms: sqrt(d_head), or 1 where scores are not scaled."""
        return self.score.divisor(self.query.out_features // self.n_heads)

    def _queries_keys_values(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        if memory is None:  # one product costs less than three
            joined = F.linear(x, *side_by_side(self.query, self.key, self.value))
            q, k, v = map(self._split, joined.chunk(3, dim=-1))
            return self._turned(q), self._turned(k), v
        q = self._split(self.query(x))
        k, v = map(self._split, F.linear(memory, *side_by_side(self.key, self.value)).chunk(2, dim=-1))
        return q, k, v

    def _turned(self, x: Heads) -> Heads:
        """Queries or keys of self-attention as rotary positions turn them; others as they are."""
        return self.relative(x, 0) if isinstance(self.relative, RotaryPositions) else x

    def _split(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch head length d_head"]:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


def side_by_side(*linears: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weights and biases of several products of one input as one: a single product costs less."""
    return torch.cat([linear.weight for linear in linears]), torch.cat([linear.bias for linear in linears])
