"""Checks that a reader can ask for on the spot: they hold what a page shows against what the model computes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from transformer.decoding.greedy import greedy
from transformer.interventions import Intervention, compile_interventions
from transformer.model.families import AnyModel
from transformer.model.score_forms import SCORE_FORMS
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
    """The computation that measured it."""

    @property
    def holds(self) -> bool:
        return self.measured <= self.tolerance  # not for NaN


def agree(claim: str, shown: object, again: object, tolerance: float, how: str) -> Check:
    """Returns the check that two arrays hold the same numbers.

    Its measure is the largest difference, infinite where the shapes differ or only one of two numbers is NaN.
    """
    a, b = np.asarray(shown, dtype=np.float64), np.asarray(again, dtype=np.float64)
    if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
        return Check(claim, math.inf, tolerance, f"{how}; their shapes are {a.shape} and {b.shape}")
    apart = np.abs(a - b)
    return Check(claim, float(apart[~np.isnan(apart)].max(initial=0.0)), tolerance, f"{how}; largest difference")


def softmax_units(outputs: Float[ndarray, "*any"], size: float) -> Float[ndarray, "*any"]:
    """Returns how far rounding may move each output of a softmax over numbers up to this size, in units of what it may
    move a number of size 1.

    Numbers round in proportion to their size, and move an output p by at most 2 p (1 - p) times as much as they move:
    scores of 200 a weight of a half by a hundred times as much as scores of 2, and a weight next to 1 hardly.
    The mean of several outputs moves no further than that either, as p (1 - p) is concave.
    """
    return np.maximum(1.0, 2 * size * outputs * (1 - outputs))


def agree_in_units(
    claim: str,
    shown: Float[ndarray, "*any"],
    again: Float[ndarray, "*any"],
    units: Float[ndarray, "*any"],
    tolerance: float,
    how: str,
) -> Check:
    """Returns the check that two arrays hold the same numbers, each difference measured in its own unit."""
    if shown.shape == again.shape:
        shown, again = shown / units, again / units
    return agree(claim, shown, again, tolerance, f"{how}, less where large scores move them more")


def check_decoding(
    model: AnyModel,
    *,
    source: Sequence[int],
    target: Sequence[int],
    log_probs: Float[ndarray, "step vocab"],
    switches: Sequence[Intervention],
) -> tuple[Check, ...]:
    """Checks the ids and log-probabilities of a recorded decoding, and the fused attention of a Transformer."""
    same = _same_output_unrecorded(model, source, target, log_probs, switches)
    return (*same, _fused_equals_explicit(model, source, target)) if isinstance(model, Transformer) else same


def _same_output_unrecorded(
    model: AnyModel,
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
    path = "the explicit path, with the same switches" if switches else "the path that nobody watches"
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
    sizes = [0.0]

    def measure(site: Site, tensor: Tensor) -> Tensor:
        if site.tensor == "scores":
            sizes.append(float(tensor.abs().max()))
        return tensor

    fused, explicit = (model(ids, read, tap=tap).double().numpy() for tap in (None, measure))
    form = SCORE_FORMS[model.config.score]
    divided = "/√d" if form.is_divided and model.config.scale_scores else ""
    return Check(
        f"PyTorch's fused attention and the written-out softmax({form.matrices}{divided})V agree",
        _apart(fused, explicit),
        5e-6 * float(softmax_units(np.array([0.5]), max(sizes))[0]),
        "one teacher-forced pass each over this output, without switches; largest difference of any logit, "
        "in units of the largest logit, of which large scores may move a larger part",
    )


def _apart(a: Float[ndarray, "*any"], b: Float[ndarray, "*any"]) -> float:
    """Returns the largest difference over the largest number, or 1: the rounding of a sum grows with its terms."""
    return float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))
