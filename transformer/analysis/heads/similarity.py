"""The similarity of heads: the distance between two heads' rows of weights, and groups of heads that are close.

Distances are Jensen-Shannon distances (Endres and Schindelin, 2003), as heads are compared by the Jensen-Shannon
divergence of their rows in Clark et al. (2019, "What Does BERT Look At?", section 6). Groups are made by average
linkage (Sokal and Michener, 1958).
"""

from math import log

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor


def summed_distances(weights: Float[Tensor, "head row key"]) -> Float[Tensor, "head head"]:
    """Returns the Jensen-Shannon distance of every two heads, summed over the rows: 0 = the same, 1 = no common key.

    sqrt(H((p + q) / 2) - (H(p) + H(q)) / 2) with entropies H in bits.
    """
    weights = weights.double()
    entropies = _bits(weights)  # -> [head row]
    n_heads = len(weights)
    distances = torch.zeros(n_heads, n_heads, dtype=torch.float64)
    for head in range(n_heads - 1):
        mixed = _bits((weights[head] + weights[head + 1 :]) / 2)
        divergence = mixed - (entropies[head] + entropies[head + 1 :]) / 2
        distances[head, head + 1 :] = divergence.clamp(min=0).sqrt().sum(dim=1)
    return distances + distances.T


def group_similar(distances: Float[ndarray, "head head"], closest: float) -> tuple[tuple[int, ...], ...]:
    """Groups heads by average linkage; the largest group first, each in ascending order.

    The two groups with the smallest mean distance between their heads become one as long as that is at most `closest`.
    """
    groups: list[tuple[int, ...]] = [(head,) for head in range(len(distances))]
    between = distances.astype(float).copy()
    while len(groups) > 1:
        pairs = [(between[a, b], a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
        nearest, a, b = min(pairs)
        if nearest > closest:
            break
        sizes = len(groups[a]), len(groups[b])
        joined = (sizes[0] * between[a] + sizes[1] * between[b]) / sum(sizes)
        between[a], between[:, a] = joined, joined
        groups[a] = tuple(sorted(groups[a] + groups[b]))
        del groups[b]
        kept = [row for row in range(len(between)) if row != b]
        between = between[kept][:, kept]
    return tuple(sorted(groups, key=lambda group: (-len(group), group)))


def _bits(rows: Float[Tensor, "*rows key"]) -> Float[Tensor, "*rows"]:
    return torch.special.entr(rows).sum(dim=-1) / log(2)
