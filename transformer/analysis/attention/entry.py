"""One entry of attention, taken apart: from q and k to its share of the block's output (sections 3.2.1 and 3.2.2).

A block's output is a plain sum: W_O's bias, and for each head and key  weight * (value W_O). So each entry has a share
of it, and the shares with the bias's sum to 1. The tensors are recorded in the same decoding, run again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from transformer.analysis.attention.vectors import attention_at, is_delivered, recorded_passes
from transformer.config import ScoreKind
from transformer.interventions import Intervention, factors_of_heads
from transformer.model.attention import MultiHeadAttention
from transformer.model.taps import ATTENTION_TENSORS, Address, Recording
from transformer.model.transformer import Transformer

_ROUNDING = 1e-4
"""A smaller share of the output is not put there by anything."""


@dataclass(frozen=True)
class Entry:
    """One query's attention to one key, and its effect. Arrays are as recorded, sums are in float64."""

    head: int
    key: int
    q: Float[ndarray, " d_head"]
    k: Float[ndarray, " d_head"]
    v: Float[ndarray, " d_head"]
    scores: Float[ndarray, " key"]
    """The query's row before the mask, as the pass computed it."""
    allowed: Bool[ndarray, " key"]
    weights: Float[ndarray, " key"]
    """The row after softmax and switches."""
    contribution: Float[ndarray, " d_model"]
    """This entry's part of the output: weight * (v W_O), times the factor of a switch that scales the head."""
    output: Float[ndarray, " d_model"]
    """The block's output at this query, before the residual."""
    shares: Float[ndarray, "head key"]
    """Each entry's contribution projected on the output, in units of the output's squared length."""
    products: Float[ndarray, " d_head"]
    """The terms of the score, as its form writes them: q_i k_i of a dot product. In float64."""
    score: ScoreKind
    """The kind of score."""
    divisor: float
    """The divisor of their sum: sqrt(d_head), or 1 where scores are not scaled."""
    bias_share: float
    rest_share: float
    """The share of neither entries nor the bias: rounding, or what a switch behind the softmax put in their place."""
    reached: bool
    """False where a switch replaced this head's context or the block's output: the entry never reached the output."""

    @property
    def dot(self) -> float:
        """The sum of the terms: q . k of a dot product."""
        return float(self.products.sum())

    @property
    def scaled(self) -> float:
        """The sum of the terms / divisor, computed here; `scores` are those of the pass."""
        return self.dot / self.divisor

    @property
    def numerators(self) -> Float[ndarray, " key"]:
        """exp(score - largest allowed score) of each key, 0 where masked: the softmax before it is divided."""
        if not self.allowed.any():
            return np.zeros(len(self.scores))
        scores = self.scores.astype(np.float64)
        return np.where(self.allowed, np.exp(np.minimum(scores - scores[self.allowed].max(), 0)), 0.0)

    @property
    def softmax(self) -> float:
        """The weight as softmax gives it, computed here; 0 in a fully masked row."""
        total = self.numerators.sum()
        return float(self.numerators[self.key] / total) if total else 0.0

    @property
    def share(self) -> float:
        """This entry's share of the output."""
        return float(self.shares[self.head, self.key])

    @property
    def parts(self) -> dict[str, float]:
        """The parts of the block's output, seen from this entry; the numbers sum to 1."""
        head = float(self.shares[self.head].sum())
        found = {
            "this entry": self.share,
            "other keys of this head": head - self.share,
            "other heads": float(self.shares.sum()) - head,
            "bias of W_O": self.bias_share,
        }
        return found | {"put there by a switch": self.rest_share} if abs(self.rest_share) > _ROUNDING else found


def explain_entry(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention] = (),
    *,
    forced: Mapping[int, int] | None = None,
    address: Address,
    head: int,
    query: int,
    key: int,
) -> Entry:
    """Returns the entry of one head of the block at `address`, recorded while the source is decoded under the switches.

    `forced` holds the tokens that must stand at some steps, as they stood in the decoding that is looked into.
    `query` is a source position in the encoder and a step in the decoder. ValueError for what does not exist.
    """
    if address.site("heads") not in model.sites():
        raise ValueError(f"this model has no attention block {address.stack}.{address.layer}.{address.sublayer}")
    if not 0 <= head < model.config.n_heads:
        raise ValueError(f"head {head} does not exist: this model has heads 0 to {model.config.n_heads - 1}")
    recording, row = _record(model, source, switches, forced or {}, address, query)
    n_keys = recording[address.site("k")].size(2)
    if not 0 <= key < n_keys:
        raise ValueError(f"key {key} did not exist when row {query} was computed: there were keys 0 to {n_keys - 1}")
    factors = factors_of_heads(switches, address, model.config.n_heads)
    attention = attention_at(model, address)
    return whole_sum(recording, attention, address=address, head=head, row=row, key=key, factors=factors)


def whole_sum(
    recording: Recording,
    attention: MultiHeadAttention,
    *,
    address: Address,
    head: int,
    row: int,
    key: int,
    factors: Sequence[float],
) -> Entry:
    """Returns the entry from one recorded pass of its block and its W_O. `row` counts recorded queries.

    The context of each head is multiplied by its one of `factors`.
    """

    def recorded(name: str) -> Tensor:
        return recording[address.site(name)][0]

    q, k = recorded("q")[head, row].double(), recorded("k")[head, key].double()
    weights, v = recorded("weights")[:, row].double(), recorded("v").double()  # -> [head key], [head key d_head]
    projection = attention.output.weight.detach().double().unflatten(1, (attention.n_heads, -1))  # d_model head d_head
    bias, output = attention.output.bias.detach().double(), recorded("output")[row].double()
    weights = weights * torch.tensor(factors, dtype=torch.float64)[:, None]  # as they go on to W_O
    context = torch.einsum("hk,hkd->hd", weights, v)
    reached = (context - recorded("heads")[:, row].double()).abs().amax(dim=-1) <= 1e-5 * (1 + context.abs().amax())
    delivered = is_delivered(attention, recorded("heads")[:, row : row + 1], output[None])
    reached, bias = reached & delivered, bias * delivered
    values = torch.einsum("mhd,hkd->hkm", projection, v) * (weights * reached[:, None])[..., None]
    length = float(output @ output)
    shares = values @ output / length if length else torch.zeros_like(weights)
    bias_share = float(bias @ output) / length if length else 0.0
    return Entry(
        head=head,
        key=key,
        q=recorded("q")[head, row].numpy(),
        k=recorded("k")[head, key].numpy(),
        v=recorded("v")[head, key].numpy(),
        scores=recorded("scores")[head, row].numpy(),
        allowed=recorded("mask").expand_as(recorded("weights"))[head, row].numpy(),
        weights=recorded("weights")[head, row].numpy(),
        contribution=values[head, key].numpy(),
        output=output.numpy(),
        shares=shares.numpy(),
        products=attention.score.terms(q, k, head).detach().numpy(),
        score=attention.score.kind,
        divisor=attention.divisor,
        bias_share=bias_share,
        rest_share=1 - float(shares.sum()) - bias_share if length else 0.0,
        reached=bool(reached[head]),
    )


def _record(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    address: Address,
    query: int,
) -> tuple[Recording, int]:
    """Returns the pass of the decoding in which this row was computed, and the row's place in it."""
    sites = {address.site(name) for name in (*ATTENTION_TENSORS, "output")}
    found, in_one_pass = recorded_passes(model, source, switches, address, sites, forced)
    passes = list(islice(found, None if in_one_pass else max(query, 0) + 1))
    recording = passes[-1]
    n_rows = recording[address.site("q")].size(2)
    n_queries = n_rows if in_one_pass else len(passes)
    if not 0 <= query < n_queries:
        raise ValueError(f"row {query} does not exist: there are rows 0 to {n_queries - 1}")
    return recording, query if in_one_pass else n_rows - 1
