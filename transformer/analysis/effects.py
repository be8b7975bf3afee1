"""What a part of the model contributes, measured by leaving it out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.decoding import teacher_forced_log_probs
from transformer.interventions import HeadsOff, compile_interventions
from transformer.model import Transformer


@dataclass(frozen=True)
class HeadEffect:
    """How a token's probability moves when one head is off."""

    switch: HeadsOff
    shift: float
    """Probability with the head off minus without, at one step, on the same prefix."""


@dataclass(frozen=True)
class OutputEffect:
    """What one head's absence does to an output that the model wrote greedily, on equal prefixes (teacher-forced)."""

    switch: HeadsOff
    kl_divergence: float
    """KL(with || without the head) of the next token, in nats, the mean over all steps."""
    step: int
    """The first step at which another token becomes the most probable one, so that greedy decoding writes that one; if
    there is no such step, the one whose token's probability moves most."""
    before: float
    """Probability of the token at that step with the head."""
    after: float
    """The same without it."""
    instead: int | None
    """The token that is then written at that step; None where the output stays the same."""


def head_average(weights: Float[ndarray, "layer head query key"], layer: int) -> Float[ndarray, "query key"]:
    """The mean over the heads of a layer. Each row is a distribution again."""
    return weights[layer].mean(axis=0, dtype=np.float64).astype(np.float32)


def head_effects(model: Transformer, source: Sequence[int], target: Sequence[int], step: int) -> tuple[HeadEffect, ...]:
    """For every head, alone, the shift of the probability of `target[step]` given what came before; largest first."""
    if not 0 <= step < len(target):
        raise ValueError(f"step {step} does not exist: the output has steps 0 to {len(target) - 1}")
    ids, out = torch.tensor([source]), torch.tensor([target[: step + 1]])

    def probability(*specs: HeadsOff) -> float:
        log_probs = teacher_forced_log_probs(model, ids, out, tap=compile_interventions(specs, model))
        return log_probs[0, step, target[step]].double().exp().item()

    base = probability()
    effects = [HeadEffect(switch, probability(switch) - base) for switch in _single_heads(model)]
    return tuple(sorted(effects, key=lambda effect: -abs(effect.shift)))


def output_effects(model: Transformer, source: Sequence[int], target: Sequence[int]) -> tuple[OutputEffect, ...]:
    """For every head, alone, what becomes of the whole output without it; outputs that change first, then by KL."""
    ids, out = torch.tensor([source]), torch.tensor([target])

    def log_probs(*specs: HeadsOff) -> Float[Tensor, "step vocab"]:
        return teacher_forced_log_probs(model, ids, out, tap=compile_interventions(specs, model))[0].double()

    base = log_probs()
    effects = [_output_effect(switch, base, log_probs(switch), out[0]) for switch in _single_heads(model)]
    return tuple(sorted(effects, key=lambda effect: (effect.instead is None, -effect.kl_divergence)))


def _output_effect(
    switch: HeadsOff,
    base: Float[Tensor, "step vocab"],
    without: Float[Tensor, "step vocab"],
    target: Int[Tensor, "step"],
) -> OutputEffect:
    p, q = (table.gather(1, target[:, None])[:, 0].exp() for table in (base, without))
    best = without.argmax(dim=-1)
    other = (best != target).nonzero()[:, 0].tolist()
    step = other[0] if other else int((q - p).abs().argmax())
    return OutputEffect(
        switch=switch,
        kl_divergence=(base.exp() * (base - without)).sum(dim=-1).mean().clamp(min=0).item(),
        step=step,
        before=p[step].item(),
        after=q[step].item(),
        instead=int(best[step]) if other else None,
    )


def _single_heads(model: Transformer) -> list[HeadsOff]:
    return [
        HeadsOff(site.stack, site.layer, site.block, (head,))  # type: ignore[arg-type]
        for site in model.sites()
        if site.tensor == "heads"
        for head in range(model.config.n_heads)
    ]
