"""Measures how strongly each output token depends on each source token, by the gradient at the source's embedding.

The gradient is that of the logit of the token that stands in the output: before softmax, so that it does not vanish
merely because the model is sure. Its length is taken over the dimensions of one source token's embedding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.data.batches import Batch, make_batch
from transformer.model.families import AnyModel, build_model
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Address, Site
from transformer.training.devices import seeded

EMBEDDING = Address("encoder").site("embedding")
Ids = tuple[int, ...]
_ROWS = 50
"""Sentences that are read together."""


class Leaf:
    """A tap that puts a tensor which gradients can be taken of in place of the source's embedding."""

    touches_attention = False
    """Attention may take its fused path."""

    def __init__(self) -> None:
        self.embedded = torch.empty(0)

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        if site != EMBEDDING:
            return tensor
        self.embedded = tensor.detach().clone().requires_grad_(True)
        return self.embedded


@dataclass(frozen=True)
class ByDistance:
    """The mean length of the gradient at each distance."""

    norm: Float[ndarray, " distance"]
    """NaN where no token is so far away."""
    count: Int[ndarray, " distance"]
    """Pairs of a source token and an output token."""


def input_gradients(model: Seq2Seq, batch: Batch) -> Float[Tensor, "batch target source"]:
    """Returns the length of the gradient of each output token's logit at each source token; 0 at padding."""
    leaf, recomputes = Leaf(), model.needs_recomputation()
    rows = []
    with torch.enable_grad():
        memory = model.encode(batch.source, batch.source_mask, tap=leaf)
        states = model.decode(batch.target_in, memory, batch.source_mask, batch.target_mask)
        for step in range(batch.target_in.size(1)):
            if recomputes:  # the step of a decoding sees no later token
                prefix, real = batch.target_in[:, : step + 1], batch.target_mask[:, : step + 1]
                states = model.decode(prefix, memory, batch.source_mask, real)
            logits = model.project(states[:, step])
            chosen = logits.gather(1, batch.target_out[:, step, None]).sum()  # rows do not depend on one another
            (gradient,) = torch.autograd.grad(chosen, leaf.embedded, retain_graph=True)
            rows.append(gradient.norm(dim=-1))
    return torch.stack(rows, dim=1) * (batch.target_mask[:, :, None] & batch.source_mask[:, None])


def distances(n_source: int, n_target: int) -> Int[ndarray, "target source"]:
    """Returns the steps between reading each of so many source tokens, the end mark after them, and writing each
    output token: the way that the gradient goes through a recurrent model that reads forwards."""
    return np.arange(1, n_target + 1)[:, None] + np.arange(n_source, 0, -1)[None]


def mean_by_distance(model: Seq2Seq, pairs: Sequence[tuple[Ids, Ids]], longest: int) -> ByDistance:
    """Returns the mean over all tokens of these pairs (source and target ids, both without end marks) for the distances
    from 0 up to `longest`."""
    sums, count = np.zeros(longest + 1), np.zeros(longest + 1, dtype=int)
    for source, norms in each_pair(model, pairs):
        apart = distances(len(source), len(norms))
        np.add.at(sums, apart, norms[:, : len(source)])
        np.add.at(count, apart, 1)
    return ByDistance(np.divide(sums, count, out=np.full(len(sums), np.nan), where=count > 0), count)


def each_pair(
    model: Seq2Seq, pairs: Sequence[tuple[Ids, Ids]]
) -> Iterator[tuple[Ids, Float[ndarray, "target source"]]]:
    """Yields the source of each pair with the gradients of its target, end marks included, in no particular order."""
    ordered = sorted(pairs, key=lambda pair: (len(pair[0]), len(pair[1])))
    for start in range(0, len(ordered), _ROWS):
        rows = ordered[start : start + _ROWS]
        found = input_gradients(model, make_batch([([*source], [*target]) for source, target in rows]))
        for (source, target), norms in zip(rows, found.double().numpy(), strict=True):
            yield source, norms[: len(target) + 1, : len(source) + 1]


def farthest(pairs: Sequence[tuple[Ids, Ids]]) -> int:
    """Returns the largest distance in these pairs."""
    return max(len(source) + len(target) + 1 for source, target in pairs)


def untrained(model: AnyModel, seed: int) -> AnyModel:
    """Returns a model of the same settings with the weights that a training with this seed starts from."""
    with seeded(seed, torch.device("cpu")):
        return build_model(model.config).eval()
