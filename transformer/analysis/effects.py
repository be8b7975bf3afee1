"""What a part of the model contributes, measured by leaving it out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from transformer.decoding import teacher_forced_log_probs
from transformer.interventions import HeadsOff, compile_interventions
from transformer.model import Transformer


@dataclass(frozen=True)
class HeadEffect:
    """How a token's probability moves when one head is off."""

    switch: HeadsOff
    shift: float
    """Probability with the head off minus without, at one step, on the same prefix."""


def head_average(weights: Float[ndarray, "layer head query key"], layer: int) -> Float[ndarray, "query key"]:
    """The mean over the heads of a layer. Each row is a distribution again."""
    return weights[layer].mean(axis=0, dtype=np.float64).astype(np.float32)


def head_effects(model: Transformer, source: Sequence[int], target: Sequence[int], step: int) -> tuple[HeadEffect, ...]:
    """For every head, alone, the shift of the probability of `target[step]` given what came before; largest first."""
    blocks = [site for site in model.sites() if site.tensor == "heads"]
    if not 0 <= step < len(target):
        raise ValueError(f"step {step} does not exist: the output has steps 0 to {len(target) - 1}")
    switches = [
        HeadsOff(site.stack, site.layer, site.block, (head,))  # type: ignore[arg-type]
        for site in blocks
        for head in range(model.config.n_heads)
    ]
    ids, out = torch.tensor([source]), torch.tensor([target[: step + 1]])

    def probability(*specs: HeadsOff) -> float:
        log_probs = teacher_forced_log_probs(model, ids, out, tap=compile_interventions(specs, model))
        return log_probs[0, step, target[step]].double().exp().item()

    base = probability()
    effects = [HeadEffect(switch, probability(switch) - base) for switch in switches]
    return tuple(sorted(effects, key=lambda effect: -abs(effect.shift)))
