"""Rollout of a recorded decoding, with what its switches took away. No Streamlit here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pages.shared.context import layers_at_zero
from transformer.analysis.attention.rollout import arrives, cross_rollout, rollout, sees_later
from transformer.interventions import Intervention
from transformer.lab import AttentionKind, Inspection

TITLES: dict[AttentionKind, tuple[str, str]] = {
    AttentionKind.ENCODER_SELF: ("position: source token", "input: source token"),
    AttentionKind.DECODER_SELF: ("position: token the decoder reads", "input: earlier token"),
    AttentionKind.CROSS: ("position: token being written", "input: source token"),
}
"""What stands at rows and columns."""
LAYER_SAID = "A layer counts as half the mean of its heads and half the residual."
_ATTENTION = ("q", "k", "v", "heads", "output")
"""Inside attention: what is copied there the weights tell, or it makes them idle."""
_ALL = slice(None)


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
    if kind != "cross":
        kept = residuals(inspection, kind, residual)
        found = rollout(effective_weights(inspection, kind), kept)[layer]
        kept = kept[: layer + 1]
        counted = LAYER_SAID if any(kept) else "A layer counts as the mean of its heads."
        counted += " Where its residual is off it counts as the mean alone." * (any(kept) and not all(kept))
        said = f"{counted} {_sums_said(found.sum(axis=-1))}{_switches_said(inspection, {kind: layer + 1})}"
        if kind == AttentionKind.DECODER_SELF and not all(residuals(inspection, AttentionKind.CROSS, residual)[:layer]):
            said += " It counts as if cross-attention, which has no residual below, let through what was heard there."
        mask = arrives(inspection.attention(kind).mask[: layer + 1], kept)
        return Rolled(found.astype(np.float32), mask, said)
    if sees_later(inspection.decoder_self.weights):
        raise CannotDraw(
            "Here decoder positions see later ones, so each step changed all rows, and the rows of cross-attention "
            "come from different passes: they cannot be multiplied. Rollout is there for both kinds of self-attention."
        )
    both = cross_rollout(
        rollout(
            effective_weights(inspection, AttentionKind.ENCODER_SELF),
            residuals(inspection, AttentionKind.ENCODER_SELF, residual),
        )[-1],
        effective_weights(inspection, AttentionKind.DECODER_SELF),
        effective_weights(inspection, AttentionKind.CROSS),
        residuals(inspection, AttentionKind.DECODER_SELF, residual),
        residuals(inspection, AttentionKind.CROSS, residual),
    )
    own, whole = both.target[layer].sum(axis=-1), (both.source[layer].sum(axis=-1) + both.target[layer].sum(axis=-1))
    said = "Through all of the encoder, then the decoder. "
    if whole.any():
        said += (
            "A row holds what the position heard of the sentence; the rest, "
            f"{own[whole > 0].mean():.1%} on average, it heard of the tokens before it."
        )
    n_encoder = len(inspection.encoder_self.weights)
    through: dict[AttentionKind, int] = {
        AttentionKind.ENCODER_SELF: n_encoder,
        AttentionKind.DECODER_SELF: layer + 1,
        AttentionKind.CROSS: layer + 1,
    }
    said += f"{_empty_said(whole)}{_switches_said(inspection, through)}"
    return Rolled(both.source[layer].astype(np.float32), None, said)


def _switches_said(inspection: Inspection, through: Mapping[AttentionKind, int]) -> str:
    """What switches took away of so many layers of each kind, and what of them a rollout does not follow."""
    gone = [spec for kind, n in through.items() for spec, (layer, *_) in silenced(inspection, kind) if layer < n]
    copied = [spec for spec in gone if _is_copy(spec)]
    if len(gone) > len(copied):
        said = " Heads that are off or at their mean count as zero."
    else:
        said = ""
    if copied:
        said += " What was copied from another sentence counts as zero: nothing of this one arrives by it."
    layers = {kind.stack: n for kind, n in through.items()}
    others = [spec.address for spec in inspection.interventions if _is_copy(spec) and not _is_followed(spec)]
    if any(at is not None and (at.layer or 0) < layers.get(at.stack, 0) for at in others):
        said += " What was copied in other places counts as this sentence's own."
    return said


def _is_copy(spec: Intervention) -> bool:
    return spec.replaced is not None and spec.replaced.by == "copy"


def _is_followed(spec: Intervention) -> bool:
    """Whether a rollout has what was copied there, or comes before it."""
    assert spec.address is not None and spec.replaced is not None, "it is a copy"
    sublayer = spec.address.sublayer
    return sublayer == "final" or (sublayer in ("self", "cross") and spec.replaced.tensor in _ATTENTION)


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
    """The weights, zero wherever nothing of what is looked at goes any further."""
    weights = inspection.attention(kind).weights.copy()
    for _, at in silenced(inspection, kind):
        weights[at] = 0
    return weights


def silenced(inspection: Inspection, kind: AttentionKind) -> list[tuple[Intervention, tuple[Any, ...]]]:
    """Switches behind the softmax, each with the layer, heads, queries and keys of the weights that it makes idle."""
    n_queries, n_keys = inspection.attention(kind).weights.shape[2:]
    found: list[tuple[Intervention, tuple[Any, ...]]] = []
    for spec in inspection.interventions:
        replaced = spec.replaced
        if replaced is None or replaced.tensor not in ("heads", "output", "v") or not spec.acts_in(*kind.where):
            continue
        assert spec.address is not None, "it acts in a block"
        heads = [] if replaced.heads is None else [list(replaced.heads)]
        if replaced.positions is None:
            found.append((spec, (spec.address.layer, *heads)))
            continue
        of_values = replaced.tensor == "v"
        onto = [position for position in replaced.positions if position < (n_keys if of_values else n_queries)]
        at = (_ALL, onto) if of_values else (onto,)
        if onto:
            found += [(spec, (spec.address.layer, head, *at)) for head in replaced.heads or (_ALL,)]
    return found


def residuals(inspection: Inspection, kind: AttentionKind, built_with: bool) -> list[bool]:
    """Of each layer, whether its block has a residual."""
    gone = layers_at_zero(inspection.interventions, kind, "residual")
    return [built_with and layer not in gone for layer in range(len(inspection.attention(kind).weights))]
