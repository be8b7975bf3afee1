"""Checks of single figures: each number is computed again by another way than the one that drew it.

Distributions are read again in double precision, on the explicit path, without a cache.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from transformer.analysis.attention.mask_reference import may_see
from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.output_checks import SlowReader
from transformer.config import AnyModelConfig
from transformer.interventions import DisableMask, Intervention, compile_interventions
from transformer.model.kinds import AttentionKind
from transformer.model.precise import in_double
from transformer.model.taps import Recorder, Tap, chain
from transformer.model.transformer import Transformer

_READ_AGAIN = "the same words read again in double precision, on the explicit path, without a cache"


def check_comparison(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention],
    *,
    before: Float[ndarray, " step"],
    after: Float[ndarray, " step"],
    kl_divergence: Float[ndarray, " step"],
) -> tuple[Check, ...]:
    """Checks the probabilities of an output's tokens without and with switches, and the divergence between."""
    p, q = (SlowReader(model, specs).log_probs(source, target) for specs in ((), switches))
    each, ids = np.arange(len(target)), list(target)
    divergences = [math.fsum(np.exp(a) * (a - b)) for a, b in zip(p, q, strict=True)]
    return (
        agree("The probabilities before are the model's own", before, np.exp(p[each, ids]), 1e-4, _READ_AGAIN),
        agree(
            "The probabilities after are those under the switches",
            after,
            np.exp(q[each, ids]),
            1e-4,
            f"{_READ_AGAIN}, with the switches",
        ),
        agree(
            "KL divergence is Σ p (ln p − ln q) over the whole vocabulary",
            kl_divergence,
            divergences,
            1e-3,
            f"summed again over {p.shape[1]:,} tokens at each of {len(p)} steps",
        ),
    )


def mask_by_rule(
    config: AnyModelConfig, kind: AttentionKind, queries: Sequence[int], keys: Sequence[int], *, off: Collection[str]
) -> Bool[ndarray, "query key"]:
    """Returns a mask written cell by cell: a key may be seen unless it is padding or a rule hides it; `off` names the
    masks that are lifted, the padding mask of this kind of attention among them."""
    padding = ("cross" if kind is AttentionKind.CROSS else "padding") not in off
    return np.array(
        [
            [
                not (padding and key == config.pad_id) and may_see(config, kind, i, j, lifted=off)
                for j, key in enumerate(keys)
            ]
            for i, _ in enumerate(queries)
        ],
        dtype=bool,
    )


@torch.no_grad()
def check_padding_is_invisible(
    model: Transformer,
    source: Sequence[Sequence[int]],
    target: Sequence[Sequence[int]],
    losses: Float[ndarray, " sentence"],
) -> tuple[Check, ...]:
    """Checks that each sentence of a batch has the loss that it has alone (`source` and `target` unpadded)."""
    alone, precise = [], in_double(model)
    for ids, out in zip(source, target, strict=True):
        rows = one_pass_log_probs(precise, ids, out, ())
        alone.append(-math.fsum(rows[np.arange(len(out)), list(out)]) / len(out))
    how = "each sentence read by itself, without padding, in double precision"
    return (agree("With all masks, each sentence has the loss that it has alone", losses, alone, 1e-3, how),)


def precise_log_probs(
    precise: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention],
    *,
    real: Bool[Tensor, "1 source"] | None = None,
    also: Tap | None = None,
) -> Float[ndarray, "step vocab"]:
    """Returns log-probabilities at each step of an output, on the explicit path of a model in float64.

    Where positions see later ones, each step is a pass over what had been written by then. `real` is False at source
    tokens that count as padding; `also` is a tap behind the switches.
    """
    if precise.config.causal_mask and DisableMask("causal") not in switches:
        return one_pass_log_probs(precise, source, target, switches, real=real, also=also)
    prefixes = [target[: step + 1] for step in range(len(target))]
    return np.stack(
        [one_pass_log_probs(precise, source, prefix, switches, real=real, also=also)[-1] for prefix in prefixes]
    )


@torch.no_grad()
def one_pass_log_probs(
    precise: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention],
    *,
    real: Bool[Tensor, "1 source"] | None = None,
    also: Tap | None = None,
) -> Float[ndarray, "step vocab"]:
    """Returns log-probabilities at each position of an output from one teacher-forced pass."""
    tap = chain(compile_interventions(switches, precise), also) or Recorder(lambda site: False)
    ids = torch.tensor([[precise.config.bos_id, *target[:-1]]])
    masks = (None, None) if real is None else (real, torch.ones_like(ids, dtype=torch.bool))
    return precise(torch.tensor([list(source)]), ids, *masks, tap=tap)[0].log_softmax(dim=-1).numpy()
