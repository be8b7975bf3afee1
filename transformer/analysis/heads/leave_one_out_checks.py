"""Checks of attention against effect: tokens hidden as padding, one pass for each; ranks counted one by one."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.checks import Check, agree
from transformer.analysis.figure_checks import precise_log_probs
from transformer.analysis.heads.leave_one_out import FEWEST, Faithfulness, Hiding
from transformer.interventions import Intervention
from transformer.model.precise import in_double
from transformer.model.taps import Site, Tap
from transformer.model.transformer import Transformer


def check_leave_one_out(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    how: Hiding,
    switches: Sequence[Intervention],
    effect: Float[ndarray, "target source"],
) -> Iterator[Check]:
    """Checks the loss of each output token without each source token."""
    precise = in_double(model)
    each = np.arange(len(target)), list(target)
    whole = precise_log_probs(precise, source, target, switches)[each]
    lost = [whole - _without(precise, source, target, how, switches, key)[each] for key in range(len(source))]
    said = f"each of {len(source)} source tokens hidden in passes of its own, in double precision"
    claim = "The log-probability that each output token loses"
    yield agree(claim, effect, np.stack(lost, axis=1), 1e-3, said)


def check_faithfulness(
    weights: Float[ndarray, "target source"], effect: Float[ndarray, "target source"], found: Faithfulness
) -> Iterator[Check]:
    """Checks one head's rank correlations by counting ranks one by one."""
    rows = [rank_correlation(a.tolist(), b.tolist()) for a, b in zip(weights, effect, strict=True)]
    ranked = [rho for rho in rows if not math.isnan(rho)]
    mean = math.fsum(ranked) / len(ranked) if ranked else math.nan
    how = f"{len(ranked)} output tokens, each rank counted as 1 + those below + half of those alike"
    yield agree("ρ within a token is the mean over output tokens", found.per_token, mean, 1e-6, how)
    yield agree("The number of output tokens that could be ranked", found.n_tokens, len(ranked), 0, how)
    pooled = rank_correlation(weights.ravel().tolist(), effect.ravel().tolist())
    pooled = pooled if weights.shape[1] >= FEWEST else math.nan
    yield agree(
        "ρ over all cells", found.pooled, pooled, 1e-6, f"{weights.size:,} cells ranked together in the same way"
    )


def check_received(
    weights: Sequence[Float[ndarray, "_ source"]],
    effect: Float[ndarray, "target source"],
    shown: Sequence[float],
) -> Check:
    """Checks the correlations of the weight that each source token gets with the loss of the output."""
    lost = [math.fsum(column) for column in effect.T]
    again = [rank_correlation([math.fsum(column) / len(table) for column in table.T], lost) for table in weights]
    how = f"{len(again)} heads, sums taken and ranked again"
    return agree("ρ of the sums", shown, again, 1e-6, how)


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Returns Spearman's rank correlation by counting; NaN as in leave_one_out.py."""
    if len(a) < FEWEST:
        return math.nan
    x, y = (_ranks(values) for values in (a, b))
    middle = (len(a) + 1) / 2  # of any ranks
    size = math.sqrt(math.fsum((r - middle) ** 2 for r in x) * math.fsum((r - middle) ** 2 for r in y))
    return math.fsum((r - middle) * (s - middle) for r, s in zip(x, y, strict=True)) / size if size else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    return [1 + sum(v < value for v in values) + (values.count(value) - 1) / 2 for value in values]


def _without(
    precise: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    how: Hiding,
    switches: Sequence[Intervention],
    key: int,
) -> Float[ndarray, "step vocab"]:
    """Reads the output with one source token hidden: as padding where it is hidden from everything."""
    lifted = any(spec.lifts - {"causal"} for spec in switches)
    if how == "cross" or lifted:
        return precise_log_probs(precise, source, target, switches, also=_hider(how, key))
    real = torch.arange(len(source))[None] != key
    return precise_log_probs(precise, source, target, switches, real=real)


def _hider(how: Hiding, key: int) -> Tap:
    """Closes one key of every mask over the source, or of cross-attention's alone."""

    def hide(site: Site, tensor: torch.Tensor) -> torch.Tensor:
        if site.tensor != "mask" or not (site.sublayer == "cross" or (how == "hidden" and site.stack == "encoder")):
            return tensor
        return tensor & (torch.arange(tensor.size(-1)) != key)

    return hide
