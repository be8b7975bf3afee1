"""Checks that a reader can ask for on the spot: that what a page shows is what the model computed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from transformer.decoding.greedy import greedy
from transformer.interventions import Intervention, compile_interventions
from transformer.model.taps import Site
from transformer.model.transformer import Transformer


@dataclass(frozen=True)
class Check:
    """A claim about a result and the deviation from it that was just measured."""

    claim: str
    measured: float
    tolerance: float
    """Largest deviation that rounding explains."""
    how: str
    """What was run to measure it."""

    @property
    def holds(self) -> bool:
        return self.measured <= self.tolerance  # not for NaN


def agree(claim: str, shown: object, again: object, tolerance: float, how: str) -> Check:
    """The proof that two arrays are the same numbers: its measure is the largest difference, infinite where the shapes
    differ or one of them is no number where the other is."""
    a, b = np.asarray(shown, dtype=np.float64), np.asarray(again, dtype=np.float64)
    if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
        return Check(claim, math.inf, tolerance, f"{how}; their shapes are {a.shape} and {b.shape}")
    apart = np.abs(a - b)
    return Check(claim, float(apart[~np.isnan(apart)].max(initial=0.0)), tolerance, f"{how}; largest difference")


def check_decoding(
    model: Transformer,
    *,
    source: Sequence[int],
    target: Sequence[int],
    log_probs: Float[ndarray, "step vocab"],
    weights: Mapping[str, Float[ndarray, "layer head query key"]],
    masks: Mapping[str, Bool[ndarray, "layer query key"]],
    switches: Sequence[Intervention],
) -> tuple[Check, ...]:
    """The proofs for one recorded decoding, given its ids, its log-probabilities and its attention by kind."""
    return (
        rows_sum_to_one(weights, masks),
        masked_weights_are_zero(weights, masks),
        *_same_output_unrecorded(model, source, target, log_probs, switches),
        _fused_equals_explicit(model, source, target),
    )


def rows_sum_to_one(weights: Mapping[str, ndarray], masks: Mapping[str, ndarray]) -> Check:
    """Of weights [layer head query key] and masks [layer query key] by kind; a fully masked row must sum to 0."""
    deviations = []
    for kind, array in weights.items():
        seen = np.any(masks[kind], axis=-1, keepdims=True)[:, None, :, 0]  # -> [layer 1 query]
        deviations.append(float(np.abs(array.sum(axis=-1, dtype=np.float64) - seen).max()))
    n_rows = sum(int(np.prod(array.shape[:-1])) for array in weights.values())
    return Check(
        "Each row of attention weights sums to 1",
        max(deviations),
        1e-6,
        f"all {n_rows:,} rows summed; largest distance from 1",
    )


def masked_weights_are_zero(weights: Mapping[str, ndarray], masks: Mapping[str, ndarray]) -> Check:
    """Of weights [layer head query key] and masks [layer query key] by kind."""
    forbidden = [np.abs(weights[kind] * ~masks[kind][:, None]) for kind in weights]
    count = sum(int((~masks[kind]).sum()) * weights[kind].shape[1] for kind in weights)
    return Check(
        "Masked cells carry exactly no weight",
        max(float(array.max()) for array in forbidden),
        0.0,
        f"{count:,} masked cells; largest weight",
    )


def _same_output_unrecorded(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    log_probs: ndarray,
    switches: Sequence[Intervention],
) -> tuple[Check, ...]:
    tap = compile_interventions(switches, model)
    limit = model.config.max_length
    steps = list(greedy(model, torch.tensor([source]), max_length=limit, tap=tap))
    again = [int(step.tokens[0]) for step in steps]
    different = sum(a != b for a, b in zip(again, target, strict=False)) + abs(len(again) - len(target))
    path = "the explicit path, with the same switches" if switches else "the fused path"
    tokens = Check(
        "Recording does not change the output",
        float(different),
        0.0,
        f"decoded again with nothing recorded, on {path}; tokens that differ",
    )
    if different:
        return (tokens,)
    fresh = torch.cat([step.log_probs for step in steps]).double().numpy()
    return (
        tokens,
        Check(
            "Recording does not change the probabilities",
            _apart(fresh, log_probs.astype(np.float64)),
            1e-5,
            f"the same run; largest difference of {fresh.size:,} log-probabilities, in units of the largest",
        ),
    )


@torch.no_grad()
def _fused_equals_explicit(model: Transformer, source: Sequence[int], target: Sequence[int]) -> Check:
    ids, read = torch.tensor([source]), torch.tensor([[model.config.bos_id, *target[:-1]]])
    fused, explicit = (model(ids, read, tap=tap).double().numpy() for tap in (None, _identity))
    if model.config.score == "additive":
        formula = "softmax(v·tanh(q + k))V"
    else:
        formula = "softmax(QKᵀ/√d)V" if model.config.scale_scores else "softmax(QKᵀ)V"
    return Check(
        f"PyTorch's fused attention and the written-out {formula} agree",
        _apart(fused, explicit),
        5e-6,
        "one teacher-forced pass each over this output, without switches; largest difference of any logit, "
        "in units of the largest logit",
    )


def _apart(a: Float[ndarray, "*any"], b: Float[ndarray, "*any"]) -> float:
    """The largest difference in units of the largest number, 1 at least: the rounding of a sum grows with its terms."""
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))


def _identity(site: Site, tensor: Tensor) -> Tensor:
    return tensor
