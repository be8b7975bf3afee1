"""The proof of a picture of attention: the weights on it, computed again from the queries, keys and masks of the very
decoding, in double precision and by another way than the model's.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.attention.score_reference import reference_scores, score_formula
from transformer.analysis.checks import Check, agree, masked_weights_are_zero, rows_sum_to_one
from transformer.decoding.greedy import Constraints, Step, greedy
from transformer.interventions import Intervention, OverwrittenRow, compile_interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.positions import AlibiPositions
from transformer.model.taps import Site, Stack, Sublayer
from transformer.model.transformer import Transformer

TOLERANCE = 1e-5
"""Of a weight: float32 sums and exponentials against float64 ones."""


def check_weights(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    *,
    stack: Stack,
    sublayer: Sublayer,
    weights: Float[ndarray, "layer head query key"],
    mask: Bool[ndarray, "layer query key"],
) -> tuple[Check, ...]:
    """That these are the weights of every layer and head of one kind of attention in the decoding of this source."""
    again = recomputed_weights(model, source, switches, forced, stack=stack, sublayer=sublayer)
    formula = f"softmax({score_formula(model)})"
    overwritten = sum(len(spec.overwritten) for spec in switches if spec.acts_in(stack, sublayer))
    rows = f"; rows that a switch overwrote ({overwritten}) against what was asked" * (overwritten > 0)
    return (
        agree(
            f"The weights are {formula} over the keys that the mask allows",
            weights,
            again,
            TOLERANCE,
            f"decoded again with q, k and mask recorded, and computed from these in double precision{rows}",
        ),
        rows_sum_to_one({sublayer: weights}, {sublayer: mask}),
        masked_weights_are_zero({sublayer: weights}, {sublayer: mask}),
    )


def recomputed_weights(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    *,
    stack: Stack,
    sublayer: Sublayer,
) -> Float[ndarray, "layer head query key"]:
    """Weights in double precision from the recorded q, k and masks; overwritten rows as they were asked for."""
    tap = compile_interventions(switches, model)
    wanted = {s for s in model.sites() if (s.stack, s.sublayer) == (stack, sublayer) and s.tensor in ("q", "k", "mask")}
    steps = list(
        greedy(
            model,
            torch.tensor([source]),
            max_length=model.config.max_length,
            constraints=Constraints(forced=forced),
            tap=tap,
            record=wanted.__contains__,
        )
    )
    if stack == "encoder":
        steps = steps[:1]
    elif sublayer == "self" and model.needs_recomputation(tap):
        steps = steps[-1:]
    whole = stack == "encoder" or (sublayer == "self" and len(steps) == 1 and model.needs_recomputation(tap))
    n_layers = model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers
    found = [_of_layer(model, steps, Site(stack, layer, sublayer, ""), whole=whole) for layer in range(n_layers)]
    weights, allowed = (np.stack(arrays) for arrays in zip(*found, strict=True))
    for spec in switches:
        for row in spec.overwritten if spec.acts_in(stack, sublayer) else ():
            assert spec.address is not None and spec.address.layer is not None, "it acts in a block"
            if row.query < weights.shape[2]:
                at = spec.address.layer
                _overwrite(weights[at, row.head, row.query], allowed[at, row.query], row)
    return weights


def _of_layer(model: Transformer, steps: Sequence[Step], site: Site, *, whole: bool) -> tuple[ndarray, ndarray]:
    """The weights [head query key] and masks [query key] of one layer, its rows gathered from the steps' passes."""
    attention = model.get_submodule(f"{site.stack}.layers.{site.layer}.{site.sublayer}_attention")
    assert isinstance(attention, MultiHeadAttention)
    rows, masks = [], []
    for step in steps:
        assert step.recording is not None, "these steps record"
        q, k, mask = (
            step.recording[Site(site.stack, site.layer, site.sublayer, name)][0].double().numpy()
            for name in ("q", "k", "mask")
        )
        scores = reference_scores(model, attention, q, k)
        if isinstance(attention.relative, AlibiPositions):
            scores = scores + attention.relative(q.shape[1], k.shape[1])[0].double().numpy()
        allowed = mask[0].astype(bool)
        found = _softmax(scores, np.broadcast_to(allowed, scores.shape))
        rows.append(found if whole else found[:, -1:])
        masks.append(allowed if whole else allowed[-1:])
    n_keys = max(row.shape[-1] for row in rows)
    pad = [n_keys - row.shape[-1] for row in rows]  # keys that did not exist yet
    weights = np.concatenate([np.pad(r, ((0, 0), (0, 0), (0, n))) for r, n in zip(rows, pad, strict=True)], axis=1)
    return weights, np.concatenate([np.pad(m, ((0, 0), (0, n))) for m, n in zip(masks, pad, strict=True)])


def _softmax(scores: ndarray, allowed: ndarray) -> ndarray:
    """Over the allowed keys alone; a row without any is 0."""
    top = np.where(allowed, scores, -np.inf).max(axis=-1, keepdims=True)
    powers = np.where(allowed, np.exp(np.where(allowed, scores - np.where(np.isfinite(top), top, 0.0), -np.inf)), 0.0)
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def _overwrite(row: ndarray, allowed: ndarray, asked: OverwrittenRow) -> None:
    """Puts into a row what the switch asked for."""
    if asked.is_even:
        row[:] = allowed / max(int(allowed.sum()), 1)
    elif len(asked.weights) <= len(row):
        row[:] = 0.0
        row[: len(asked.weights)] = asked.weights
