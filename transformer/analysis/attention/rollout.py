"""Attention rollout: the input tokens from which information can reach a position, through all layers up to one.

Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers", ACL 2020, section 3: the heads of a layer are
averaged, the residual enters as the identity, A = 0.5 W + 0.5 I, and rollout is the product of these from the input up
(eq. 1 with j = 0). No values, no feed-forwards, no norms: what a head looks at and what it passes on are different
things, so a rollout is a picture of the paths, not of effects.

Ours, and not in the paper: heads that are off count as 0 in the mean W, as does all else of which nothing arrives, a
scaled head counts times its factor, each row of the product is divided by its sum (which is 1 unless a head is off or
scaled, or a row is fully masked), and a block without a residual has A = W. So paths that lead nowhere count for
nothing, and a row sums to 1 or, where no path leads to the input, to 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

Weights = Float[ndarray, "layer head query key"]


@dataclass(frozen=True)
class CrossRollout:
    """The share of each token of both sentences in the decoder's positions, through each of its layers.

    Rows of both together sum to 1, or to 0 where nothing arrives.
    """

    source: Float[ndarray, "layer query source"]
    target: Float[ndarray, "layer query target"]


def rollout(weights: Float[ndarray, "layer head query query"], residual: Sequence[bool]) -> ndarray:
    """Returns the rollout of a self-attention stack through each layer [layer query key], in float64.

    `residual` says of each layer whether its block has one. Abnar and Zuidema define it for one stack of
    self-attention; the decoder's here is the same product of its causal one, as if there were no cross-attention.
    """
    heard = np.eye(weights.shape[-1])
    through = []
    for layer, has_residual in zip(weights, residual, strict=True):
        mean = layer.mean(axis=0, dtype=np.float64)
        heard = _rows_to_one((mean + np.eye(len(mean)) if has_residual else mean) @ heard)
        through.append(heard)
    return np.stack(through)


def cross_rollout(
    encoder: Float[ndarray, "source source"],
    decoder_self: Float[ndarray, "layer head query query"],
    cross: Float[ndarray, "layer head query source"],
    residual_self: Sequence[bool],
    residual_cross: Sequence[bool],
) -> CrossRollout:
    """Returns the rollout through both stacks: every decoder position as a mixture of source and target tokens.

    A position starts as its own target token. In each layer self-attention mixes positions, as in `rollout`; then the
    position becomes (C E + what it was) / 2, where C is the mean of the cross-attention's heads and E the encoder's
    rollout through its last layer: attending to the encoder's output is attending to what that output had heard of.
    A row of source and target parts together is divided by its sum. So the source part alone sums to less than 1: the
    rest of the position stems from the target tokens before it. Abnar and Zuidema define no rollout for two stacks.
    The recursion (the encoder's rollout put through cross-attention, source and target prefix side by side in a row
    that sums to 1) is the one of Ferrando et al. (2022), "Towards Opening the Black Box of Neural Machine Translation:
    Source and Target Interpretations of the Transformer", EMNLP 2022 (ALTI+). What goes into it is not theirs: they
    measure each token's contribution to a block, norms and residual included; here it is raw weights, averaged over
    heads, and half the residual.
    """
    n_query = decoder_self.shape[-1]
    heard = np.concatenate((np.zeros((n_query, len(encoder))), np.eye(n_query)), axis=1)  # -> [query source+target]
    through = []
    for self_weights, cross_weights, kept_self, kept_cross in zip(
        decoder_self, cross, residual_self, residual_cross, strict=True
    ):
        mixed = self_weights.mean(axis=0, dtype=np.float64) @ heard
        heard = _rows_to_one(mixed + heard if kept_self else mixed)
        mixed = np.zeros_like(heard)
        mixed[:, : len(encoder)] = cross_weights.mean(axis=0, dtype=np.float64) @ encoder
        heard = _rows_to_one(mixed + heard if kept_cross else mixed)
        through.append(heard)
    both = np.stack(through)
    return CrossRollout(both[..., : len(encoder)], both[..., len(encoder) :])


def sees_later(decoder_self: Weights) -> bool:
    """Tells whether any position attends to a later one.

    Each step of decoding then changes all rows, and rows recorded at different steps cannot be multiplied.
    """
    return bool(np.triu(decoder_self.max(axis=(0, 1), initial=0.0), k=1).any())


def arrives(mask: Bool[ndarray, "layer query query"], residual: Sequence[bool]) -> Bool[ndarray, "query query"]:
    """Returns where a path of allowed cells and residuals leads through these layers."""
    own = np.eye(mask.shape[-1], dtype=bool)
    reached = own
    for layer, has_residual in zip(mask, residual, strict=True):
        reached = (layer | (own & has_residual)).astype(int) @ reached.astype(int) > 0
    return reached


def _rows_to_one(matrix: Float[ndarray, "query key"]) -> Float[ndarray, "query key"]:
    sums = matrix.sum(axis=-1, keepdims=True)
    return matrix / np.where(sums > 0, sums, 1.0)
