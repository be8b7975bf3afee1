"""Scores: how well a query and a key of one head match, before mask and softmax.

What each is called, how it is written, and how to add one stands in `model.score_forms`.
"""

import math
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.config import AnyModelConfig, ConvolutionalConfig, ModelConfig, RecurrentConfig, ScoreKind
from transformer.model.score_forms import SCORE_FORMS

Queries = Float[Tensor, "batch head query d_head"]
Keys = Float[Tensor, "batch head key d_head"]


@runtime_checkable
class Score(Protocol):
    """The interface of a score, for attention and its explanation; an `nn.Module`."""

    kind: ScoreKind
    """Its name in the settings."""
    product_lines: tuple[str, ...]
    """How the lines of `forward` begin that bring queries and keys together."""

    @property
    def fused_scale(self) -> float | None:
        """The factor of products where one library call can compute it (None: its usual 1 / sqrt(d_k))."""
        ...

    @property
    def is_dot_product(self) -> bool:
        """True if it is q k^T times a constant, as decoding by plain products needs."""
        ...

    def fused_queries(self, q: Queries) -> Queries | None:
        """Returns queries whose products with the keys are the scores times the divisor; None if there are none."""
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

    kind: ScoreKind = "dot"
    is_dot_product = True
    product_lines = ("products =",)

    def __init__(self, *, scaled: bool = True) -> None:
        super().__init__()
        self.scaled = scaled

    @property
    def fused_scale(self) -> float | None:
        return None if self.scaled else 1.0

    def divisor(self, d_head: int) -> float:
        return math.sqrt(d_head) if self.scaled else 1.0

    def fused_queries(self, q: Queries) -> Queries | None:
        return q

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

    kind: ScoreKind = "additive"
    is_dot_product = False
    fused_scale = None
    product_lines = ("met =", "return")

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.empty(n_heads, d_head))
        nn.init.normal_(self.v, std=d_head**-0.5)  # scores of order 1, as those of scaled products

    def divisor(self, d_head: int) -> float:
        return 1.0

    def fused_queries(self, q: Queries) -> Queries | None:
        return None

    def terms(self, q: Float[Tensor, " d_head"], k: Float[Tensor, " d_head"], head: int) -> Float[Tensor, " d_head"]:
        return self.v[head].to(q.dtype) * (q + k).tanh()

    def forward(self, q: Queries, k: Keys) -> Float[Tensor, "batch head query key"]:
        met = torch.tanh(q[..., :, None, :] + k[..., None, :, :])  # -> [batch head query key d_head]
        return torch.einsum("bhqkd,hd->bhqk", met, self.v.to(met.dtype))


class Multiplicative(DotProduct):
    """q W k^T / sqrt(d_k) with a matrix W for each head ("general": Luong et al. 2015, section 3.1), or undivided.

    W could be part of W_Q: this is a dot product that is trained otherwise.
    """

    kind: ScoreKind = "multiplicative"
    is_dot_product = False

    def __init__(self, n_heads: int, d_head: int, *, scaled: bool = True) -> None:
        super().__init__(scaled=scaled)
        self.W = nn.Parameter(torch.empty(n_heads, d_head, d_head))
        nn.init.normal_(self.W, std=d_head**-0.5)  # scores as large as those of dot products

    def fused_queries(self, q: Queries) -> Queries | None:
        return q @ self.W.to(q.dtype)

    def terms(self, q: Float[Tensor, " d_head"], k: Float[Tensor, " d_head"], head: int) -> Float[Tensor, " d_head"]:
        return (q @ self.W[head].to(q.dtype)) * k

    def forward(self, q: Queries, k: Keys) -> Float[Tensor, "batch head query key"]:
        products = q @ self.W.to(q.dtype) @ k.transpose(-2, -1)
        return products / math.sqrt(q.size(-1)) if self.scaled else products


SCORES: dict[ScoreKind, type[DotProduct | Additive]] = {
    score.kind: score for score in (DotProduct, Additive, Multiplicative)
}
"""The module of each kind of score."""


def build_score(config: ModelConfig) -> DotProduct | Additive:
    """The score that these settings name, with parameters of its own for one sublayer."""
    match config.score:
        case "dot":
            return DotProduct(scaled=config.scale_scores)
        case "additive":
            return Additive(config.n_heads, config.d_head)
        case "multiplicative":
            return Multiplicative(config.n_heads, config.d_head, scaled=config.scale_scores)


def score_parameters(config: ModelConfig) -> int:
    """Returns how many parameters `build_score` gives one sublayer."""
    return config.d_model * {"dot": 0, "additive": 1, "multiplicative": config.d_head}[config.score]


def score_equation(config: AnyModelConfig) -> str:
    """LaTeX of the scores of one head; of other models, of a state of their decoder with those h of their encoder."""
    if isinstance(config, RecurrentConfig):
        return {"additive": r"v^\top \tanh(W s_t + U h_j)", "general": r"s_t^\top W h_j"}.get(
            config.attention, r"s_t^\top h_j"
        )
    if isinstance(config, ConvolutionalConfig):
        return r"\frac{(W s_t + b + g_t)^\top h_j}{\sqrt{d}}"
    return SCORE_FORMS[config.score].scaled(config.scale_scores)


def gathered_equation(config: AnyModelConfig) -> str:
    """LaTeX of what one query gathers under its weights."""
    if isinstance(config, ModelConfig):
        return r"\mathrm{head} &= A\,V"
    values = "(h_j + e_j)" if isinstance(config, ConvolutionalConfig) else "h_j"
    return rf"c_t &= \textstyle\sum_j A_{{tj}}\, {values}"
