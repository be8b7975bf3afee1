"""Scores: how well a query and a key of one head match, before mask and softmax.

To add one, write its class here and name it in `build_score` and in `config.ScoreKind`. A score says itself how it is
computed, what it is a sum of, and its equation; `transformer.analysis.attention.score_reference` computes it again by
other means.
"""

import math
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.config import AnyModelConfig, ConvolutionalConfig, ModelConfig, RecurrentConfig

Queries = Float[Tensor, "batch head query d_head"]
Keys = Float[Tensor, "batch head key d_head"]


@runtime_checkable
class Score(Protocol):
    """The interface of a score, for attention, its explanation and its equations; an `nn.Module`."""

    @property
    def equation(self) -> str:
        """LaTeX of all scores of a head, of Q and K."""
        ...

    @property
    def fused_scale(self) -> float | None:
        """The factor of q k^T where one library call can compute it (None: its usual 1 / sqrt(d_k))."""
        ...

    @property
    def is_dot_product(self) -> bool:
        """True if it is q k^T times a constant, as the fused path and bilinear splits need."""
        ...

    def divisor(self, d_head: int) -> float:
        """Returns the divisor of the sum of the terms."""
        ...

    def terms(self, q: Float[Tensor, " d_head"], k: Float[Tensor, " d_head"], head: int) -> Float[Tensor, " d_head"]:
        """The numbers that add up to one score times its divisor."""
        ...

    def __call__(self, q: Queries, k: Keys) -> Float[Tensor, "batch head query key"]: ...


class DotProduct(nn.Module):
    """q k^T / sqrt(d_k) (section 3.2.1, eq. 1), or without the division."""

    is_dot_product = True

    def __init__(self, *, scaled: bool = True) -> None:
        super().__init__()
        self.scaled = scaled

    @property
    def equation(self) -> str:
        return r"\frac{Q K^\top}{\sqrt{d_k}}" if self.scaled else r"Q K^\top"

    @property
    def fused_scale(self) -> float | None:
        return None if self.scaled else 1.0

    def divisor(self, d_head: int) -> float:
        return math.sqrt(d_head) if self.scaled else 1.0

    def terms(self, q: Float[Tensor, " d_head"], k: Float[Tensor, " d_head"], head: int) -> Float[Tensor, " d_head"]:
        return q * k

    def forward(self, q: Queries, k: Keys) -> Float[Tensor, "batch head query key"]:
        products = q @ k.transpose(-2, -1)
        return products / math.sqrt(q.size(-1)) if self.scaled else products


class Additive(nn.Module):
    """v · tanh(W q + U k) with a vector v for each head (Bahdanau et al. 2015, appendix A.1.2).

    W and U are the projections W_Q and W_K, which have made q and k already. Each query meets each key in d_head
    numbers at once, which costs d_head times the memory of a dot product.
    """

    is_dot_product = False
    fused_scale = None
    equation = r"v^\top \tanh(q_t + k_j)"

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.empty(n_heads, d_head))
        nn.init.normal_(self.v, std=d_head**-0.5)  # scores of order 1, as those of scaled products

    def divisor(self, d_head: int) -> float:
        return 1.0

    def terms(self, q: Float[Tensor, " d_head"], k: Float[Tensor, " d_head"], head: int) -> Float[Tensor, " d_head"]:
        return self.v[head].to(q.dtype) * (q + k).tanh()

    def forward(self, q: Queries, k: Keys) -> Float[Tensor, "batch head query key"]:
        met = torch.tanh(q[..., :, None, :] + k[..., None, :, :])  # -> [batch head query key d_head]
        return torch.einsum("bhqkd,hd->bhqk", met, self.v.to(met.dtype))


def build_score(config: ModelConfig) -> DotProduct | Additive:
    """The score that these settings name, with parameters of its own for one sublayer."""
    match config.score:
        case "dot":
            return DotProduct(scaled=config.scale_scores)
        case "additive":
            return Additive(config.n_heads, config.d_head)


def score_equation(config: AnyModelConfig) -> str:
    """LaTeX of the scores of one head; of other models, of a state of their decoder with those h of their encoder."""
    if isinstance(config, RecurrentConfig):
        return {"additive": r"v^\top \tanh(W s_t + U h_j)", "general": r"s_t^\top W h_j"}.get(
            config.attention, r"s_t^\top h_j"
        )
    if isinstance(config, ConvolutionalConfig):
        return r"\frac{(W s_t + b + g_t)^\top h_j}{\sqrt{d}}"
    return Additive.equation if config.score == "additive" else DotProduct(scaled=config.scale_scores).equation


def gathered_equation(config: AnyModelConfig) -> str:
    """LaTeX of what one query gathers under its weights."""
    if isinstance(config, ModelConfig):
        return r"\mathrm{head} &= A\,V"
    values = "(h_j + e_j)" if isinstance(config, ConvolutionalConfig) else "h_j"
    return rf"c_t &= \textstyle\sum_j A_{{tj}}\, {values}"
