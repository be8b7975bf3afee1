"""Attention against effect: each source token hidden in turn, what each output token loses by it, and whether a head
looks most at the tokens that are needed most.

Hiding an input to see its effect is Li, Monroe and Jurafsky's (2016, "Understanding Neural Networks through
Representation Erasure"); ranking attention against it is Jain and Wallace's (2019, "Attention is not Explanation",
section 4.1), here with Spearman's rank correlation (1904), ties at their mean rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from transformer.decoding.greedy import log_probs_on_prefixes
from transformer.interventions import Intervention, compile_interventions
from transformer.model.taps import Site, Tap, chain
from transformer.model.transformer import Transformer

Hiding = Literal["hidden", "cross"]
FEWEST = 3
"""Source tokens below which a rank correlation says nothing."""


@dataclass(frozen=True)
class HideKeys:
    """A tap under which row i of a batch may not see key i: of any attention on the source, or of cross-attention."""

    how: Hiding

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        on_source = site.sublayer == "cross" or (self.how == "hidden" and site.stack == "encoder")
        if site.tensor != "mask" or not on_source:
            return tensor
        mask, rows = tensor.clone(), torch.arange(tensor.size(0))
        mask[rows, :, :, rows] = False
        return mask


@dataclass(frozen=True)
class Faithfulness:
    """The agreement of a head's weights on the source tokens with their effects, as rank correlations."""

    per_token: float
    """Mean of the rank correlations within each output token; NaN where none could be ranked."""
    n_tokens: int
    """Output tokens that went in: their weights and effects are not all equal."""
    pooled: float
    """Rank correlation over all cells together."""


@torch.no_grad()
def leave_one_out(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    how: Hiding,
    switches: Sequence[Intervention] = (),
) -> Float[ndarray, "target source"]:
    """Returns the nats of log-probability that each output token loses when a source token is erased.

    The output before it stays the same. Positive where the source token helped.

    "hidden": no query of the encoder or of cross-attention may see the token, as if it were padding; its neighbours
    keep their places. "cross": only cross-attention may not, while what the encoder has carried from it to other
    tokens stays. `switches` hold throughout.
    """
    tap = compile_interventions(switches, model)
    whole = _chosen(model, [source], target, tap)
    without = _chosen(model, [source] * len(source), target, chain(tap, HideKeys(how)))
    return (whole - without).T.numpy()


def faithfulness(weights: Float[ndarray, "target source"], effect: Float[ndarray, "target source"]) -> Faithfulness:
    """Compares one head of cross-attention with the effects."""
    rows = [spearman(a, b) for a, b in zip(weights, effect, strict=True)]
    ranked = [value for value in rows if not np.isnan(value)]
    return Faithfulness(
        per_token=float(np.mean(ranked)) if ranked else float("nan"),
        n_tokens=len(ranked),
        pooled=spearman(weights.ravel(), effect.ravel()) if weights.shape[1] >= FEWEST else float("nan"),
    )


def received(weights: Float[ndarray, "query key"], effect: Float[ndarray, "target source"]) -> float:
    """Returns the rank correlation of the mean weight on each source token with the loss of the whole output."""
    return spearman(weights.mean(axis=0), effect.sum(axis=0))


def spearman(a: Float[ndarray, " item"], b: Float[ndarray, " item"]) -> float:
    """Returns Spearman's rank correlation: Pearson's of the ranks, ties at their mean.

    NaN where a side is all one value, or there are fewer than FEWEST items.
    """
    if len(a) < FEWEST:
        return float("nan")
    x, y = (mean_ranks(values) for values in (a, b))
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x * x).sum() * (y * y).sum())
    return float((x * y).sum() / size) if size > 0 else float("nan")


def mean_ranks(values: Float[ndarray, " item"]) -> Float[ndarray, " item"]:
    """The rank of each value from 1 on, equal ones at the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[places]


def _chosen(
    model: Transformer, sources: Sequence[Sequence[int]], target: Sequence[int], tap: Tap | None
) -> Float[Tensor, "row step"]:
    """The log-probability of each token of the target in each row, in float64."""
    source = torch.tensor(list(map(list, sources)))
    real = torch.ones_like(source, dtype=torch.bool)
    ids = torch.tensor([list(target)]).expand(len(sources), -1)
    found = log_probs_on_prefixes(model, source, ids, real, tap=tap)
    return found.gather(2, ids[..., None])[..., 0].double()
