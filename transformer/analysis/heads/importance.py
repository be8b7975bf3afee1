"""Measures what a head contributes to one output by leaving it out: at zero, or at its mean.

Over many pairs: validation_importance.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.analysis.heads.ablations import Means, forced_under, in_batches
from transformer.analysis.heads.addresses import HeadAt, Tell, heads_of
from transformer.interventions import AblateHeads, Intervention, compile_interventions, heads_set_to
from transformer.model.transformer import Transformer


@dataclass(frozen=True)
class HeadEffect:
    """The move of a token's probability when one head is off."""

    switch: AblateHeads
    shift: float
    """Probability with the head off minus without, at one step, on the same prefix."""


@dataclass(frozen=True)
class OutputEffect:
    """The effect of one head's absence on an output that the model wrote greedily, on equal prefixes."""

    switch: AblateHeads
    """The head; with means it was not off but at its mean."""
    kl_divergence: float
    """KL(with || without the head) of the next token, in nats, the mean over all steps."""
    log_prob: float
    """Change of the output's log-probability, in nats, summed over its tokens: negative where the head helped."""
    step: int
    """The first step at which another token becomes the most probable one, so that greedy decoding writes that one; if
    there is no such step, the one whose token's probability moves most."""
    before: float
    """Probability of the token at that step with the head."""
    after: float
    """The same without it."""
    instead: int | None
    """The token that is then written at that step; None where the output stays the same."""

    @property
    def at(self) -> HeadAt:
        """The address of the head."""
        return HeadAt(self.switch.stack, self.switch.layer, self.switch.sublayer, self.switch.heads[0])


def head_average(weights: Float[ndarray, "layer head query key"], layer: int) -> Float[ndarray, "query key"]:
    """Returns the mean over the heads of a layer. Each row is a distribution again."""
    return weights[layer].mean(axis=0, dtype=np.float64).astype(np.float32)


def head_effects(
    model: Transformer, source: Sequence[int], target: Sequence[int], step: int, *, tell: Tell | None = None
) -> tuple[HeadEffect, ...]:
    """Measures, without each head alone, the shift of the probability of `target[step]`; largest first."""
    if not 0 <= step < len(target):
        raise ValueError(f"step {step} does not exist: the output has steps 0 to {len(target) - 1}")
    heads = heads_of(model)
    each = _without_each(model, source, target[: step + 1], heads, (), tell=tell)
    base, *without = (float(found[step, target[step]].exp()) for found in each)
    effects = [HeadEffect(at.switch, p - base) for at, p in zip(heads, without, strict=True)]
    return tuple(sorted(effects, key=lambda effect: -abs(effect.shift)))


def output_effects(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention] = (),
    *,
    means: Means | None = None,
    tell: Tell | None = None,
) -> tuple[OutputEffect, ...]:
    """Measures the whole output without each head alone; outputs that change first, then by KL.

    With `switches`, the output is the one that was written under them, and heads that are off already are left out.
    With `means` a head is set to these instead of zero, and heads that a switch has set to their mean are left out too.
    """
    off = heads_set_to(switches, ("zero",) if means is None else ("zero", "mean"))
    heads = [at for at in heads_of(model) if (at.stack, at.layer, at.sublayer, at.head) not in off]
    each = _without_each(model, source, target, heads, switches, means, tell)
    base, written = next(each), torch.tensor(target)
    effects = [
        _output_effect(at.switch, base, found, written, model.config.pad_id)
        for at, found in zip(heads, each, strict=True)
    ]
    return tuple(sorted(effects, key=lambda effect: (effect.instead is None, -effect.kl_divergence)))


def _without_each(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    heads: Sequence[HeadAt],
    switches: Sequence[Intervention],
    means: Means | None = None,
    tell: Tell | None = None,
) -> Iterator[Float[Tensor, "step vocab"]]:
    """Yields log-probabilities with all heads, then without each, in float64; `tell` is asked before each pass."""
    tap = compile_interventions(switches, model)
    sets = [(), *((at,) for at in heads)]
    done = 0
    for part in in_batches(sets, len(source), len(target), model.config.vocab_size):
        if tell is not None:
            tell(done / len(sets))
        done += len(part)
        yield from forced_under(model, source, target, part, tap=tap, means=means).double()


def _output_effect(
    switch: AblateHeads,
    base: Float[Tensor, "step vocab"],
    without: Float[Tensor, "step vocab"],
    target: Int[Tensor, " step"],
    pad_id: int,
) -> OutputEffect:
    a, b = (table.gather(1, target[:, None])[:, 0] for table in (base, without))
    p, q = a.exp(), b.exp()
    writable = without.clone()
    writable[:, pad_id] = -torch.inf  # is never written
    best = writable.argmax(dim=-1)
    other = (best != target).nonzero()[:, 0].tolist()
    step = other[0] if other else int((q - p).abs().argmax())
    return OutputEffect(
        switch=switch,
        kl_divergence=(base.exp() * (base - without)).sum(dim=-1).mean().clamp(min=0).item(),
        log_prob=float((b - a).sum()),
        step=step,
        before=p[step].item(),
        after=q[step].item(),
        instead=int(best[step]) if other else None,
    )
