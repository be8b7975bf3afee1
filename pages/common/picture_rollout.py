"""Rollout of a recorded decoding, with what its switches took away. No Streamlit here."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.rollout import arrives, cross_rollout, rollout, sees_later
from transformer.attention_edits import BlockOff
from transformer.interventions import HeadsMean, HeadsOff, ResidualOff
from transformer.lab import KIND_SITES, AttentionKind, Inspection

TITLES: dict[AttentionKind, tuple[str, str]] = {
    "encoder_self": ("position: source token", "input: source token"),
    "decoder_self": ("position: token the decoder reads", "input: earlier token"),
    "cross": ("position: token being written", "input: source token"),
}
"""What stands at rows and columns."""
LAYER_SAID = "A layer counts as half the mean of its heads and half the residual."


class CannotDraw(ValueError):
    """A sentence that says why there is no such picture."""


@dataclass(frozen=True)
class Rolled:
    """The rollout of one kind of attention through one layer."""

    values: Float[ndarray, "query key"]
    mask: Bool[ndarray, "query key"] | None
    """Where anything may arrive; None: everywhere."""
    said: str


def rolled_out(inspection: Inspection, kind: AttentionKind, layer: int, *, residual: bool) -> Rolled:
    """Rollout through a layer; `residual`: whether the model was built with them. CannotDraw where it means nothing."""
    off = " Heads that are off or at their mean count as zero." * any(
        isinstance(spec, HeadsOff | HeadsMean | BlockOff) for spec in inspection.interventions
    )
    if kind != "cross":
        attention = inspection.attention(kind)
        kept = residuals(inspection, kind, residual)
        found = rollout(effective_weights(inspection, kind), kept)[layer]
        counted = LAYER_SAID if any(kept) else "A layer counts as the mean of its heads."
        counted += " Where its residual is off it counts as the mean alone." * (any(kept) and not all(kept))
        said = f"{counted} {_sums_said(found.sum(axis=-1))}{off}"
        return Rolled(found.astype(np.float32), arrives(attention.mask[: layer + 1]), said)
    if sees_later(inspection.decoder_self.weights):
        raise CannotDraw(
            "Here decoder positions see later ones, so each step changed all rows, and the rows of cross-attention "
            "come from different passes: they cannot be multiplied. Rollout is there for both kinds of self-attention."
        )
    both = cross_rollout(
        rollout(effective_weights(inspection, "encoder_self"), residuals(inspection, "encoder_self", residual))[-1],
        effective_weights(inspection, "decoder_self"),
        effective_weights(inspection, "cross"),
        residuals(inspection, "decoder_self", residual),
        residuals(inspection, "cross", residual),
    )
    own, whole = both.target[layer].sum(axis=-1), (both.source[layer].sum(axis=-1) + both.target[layer].sum(axis=-1))
    said = "Through all of the encoder, then the decoder. "
    if whole.any():
        said += (
            "A row holds what the position heard of the sentence; the rest, "
            f"{own[whole > 0].mean():.1%} on average, it heard of the tokens before it."
        )
    said += f"{_empty_said(whole)}{off}"
    return Rolled(both.source[layer].astype(np.float32), None, said)


def _sums_said(sums: Float[ndarray, "query"]) -> str:
    """What the rows of a rollout sum to: 1, and 0 where no path leads to the input."""
    full = int((sums > 0).sum())
    if full == len(sums):
        return "Rows sum to 1."
    return f"{f'{full} of {len(sums)} rows sum to 1.' if full else ''}{_empty_said(sums)}".strip()


def _empty_said(sums: Float[ndarray, "query"]) -> str:
    empty = int((sums == 0).sum())
    if not empty:
        return ""
    if empty == len(sums):
        return f" All {empty} rows are 0: nothing arrives there."
    return f" {empty} of {len(sums)} rows {'is' if empty == 1 else 'are'} 0: nothing arrives there."


def effective_weights(inspection: Inspection, kind: AttentionKind) -> Float[ndarray, "layer head query key"]:
    """The weights, zero in heads of which nothing goes any further."""
    weights = inspection.attention(kind).weights.copy()
    stack, block = KIND_SITES[kind]
    for spec in inspection.interventions:
        if isinstance(spec, HeadsOff | HeadsMean) and (spec.stack, spec.block) == (stack, block):
            weights[spec.layer, list(spec.heads)] = 0
        elif isinstance(spec, BlockOff) and (spec.stack, spec.block) == (stack, block):
            weights[spec.layer] = 0
    return weights


def residuals(inspection: Inspection, kind: AttentionKind, built_with: bool) -> list[bool]:
    """Of each layer, whether its block has a residual."""
    stack, block = KIND_SITES[kind]
    gone = {
        spec.layer
        for spec in inspection.interventions
        if isinstance(spec, ResidualOff) and (spec.stack, spec.block) == (stack, block)
    }
    return [built_with and layer not in gone for layer in range(len(inspection.attention(kind).weights))]
