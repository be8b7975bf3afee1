"""Checks of attention weights: each computed again in double precision, by another way than the model's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.attention.entry_reference import Row, record_rows
from transformer.analysis.attention.one_head_reference import one_head_attention, pass_from_ids
from transformer.analysis.attention.score_reference import score_formula
from transformer.analysis.checks import Check, agree, agree_in_units, softmax_units
from transformer.inspection.inspection import Attention, Inspection
from transformer.interventions import Intervention
from transformer.model.families import AnyModel
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.taps import Address
from transformer.model.transformer import Transformer

TOLERANCE = 1e-5
"""The tolerance of a weight: float32 sums and exponentials against float64 ones, of scores near 1."""


@dataclass(frozen=True)
class Recomputed:
    """One kind of attention in every layer, in double precision."""

    weights: Float[ndarray, "layer head query key"]
    """Overwritten rows as they were asked for."""
    mask: Bool[ndarray, "layer query key"]
    """The masks by their rule."""
    largest: float
    """The size of the largest score of a key that is allowed."""

    def units(self, weights: Float[ndarray, "*any"]) -> Float[ndarray, "*any"]:
        """Returns how far rounding may move some of the weights, in units of TOLERANCE."""
        return softmax_units(weights, self.largest)

    def check(self, claim: str, shown: Float[ndarray, "*any"], again: Float[ndarray, "*any"], how: str) -> Check:
        """Checks weights that are shown against some of these."""
        return agree_in_units(claim, shown, again, self.units(again), TOLERANCE, how)


def check_recorded(model: AnyModel, seen: Inspection, kind: KindName) -> tuple[Check, ...]:
    """Checks the weights and masks of one kind of attention in a decoding."""
    decoded = seen.source_ids, seen.interventions, dict(seen.forced)
    checks = check_weights(model, *decoded, kind, seen.attention(kind))
    if isinstance(model, Transformer) or seen.interventions:
        return checks
    weights, _ = pass_from_ids(model, seen.source_ids, (model.config.bos_id, *seen.target_ids[:-1]))
    how = "every layer at every token written out in double precision, from the token ids"
    claim = "The weights are those of the whole model, computed from the ids alone"
    return *checks, agree(claim, seen.attention(kind).weights, weights, TOLERANCE, how)


def check_weights(
    model: AnyModel,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    kind: KindName,
    shown: Attention,
) -> tuple[Check, ...]:
    """Checks the weights and masks of every layer of one kind of attention in the decoding of this source."""
    again = recomputed_attention(model, source, switches, forced, kind)
    how = "decoded again, and computed from recorded queries and keys in double precision"
    overwritten = [spec.overwritten for spec in switches if spec.acts_in(*AttentionKind(kind).where)]
    if n_rows := sum(map(len, overwritten)):
        how += f"; {n_rows} rows that a switch overwrote against what it asked for"
    claim = f"The weights are softmax({score_formula(model)}) over the keys that the mask allows"
    return (
        again.check(claim, shown.weights, again.weights, how),
        agree(
            "The mask is what its rule says",
            shown.mask,
            again.mask,
            0,
            f"{again.mask.size:,} cells looked at one by one",
        ),
    )


def recomputed_attention(
    model: AnyModel,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    kind: KindName,
) -> Recomputed:
    """Returns one kind of attention in the decoding of this source, from queries and keys recorded once more."""
    if not isinstance(model, Transformer):
        return Recomputed(*one_head_attention(model, source, switches, forced))
    layers = _rows(model, source, switches, forced, kind)
    sizes = (np.abs(row.scores[:, row.allowed]).max(initial=0.0) for rows in layers for row in rows)
    return Recomputed(
        weights=_together([[row.softmax for row in rows] for rows in layers]),
        mask=_together([[row.allowed for row in rows] for rows in layers]),
        largest=float(max(sizes, default=0.0)),
    )


def recorded_rows(model: Transformer, seen: Inspection, kind: KindName) -> list[list[Row]]:
    """Returns the rows of one kind of attention, layer by layer, in the decoding of a sentence."""
    return _rows(model, seen.source_ids, seen.interventions, dict(seen.forced), kind)


def _rows(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    kind: KindName,
) -> list[list[Row]]:
    stack, sublayer = AttentionKind(kind).where
    n_layers = model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers
    addresses = [Address(stack, layer, sublayer) for layer in range(n_layers)]
    return record_rows(model, source, switches, forced, addresses)


def _together(layers: Sequence[Sequence[ndarray]]) -> ndarray:
    """Returns the rows as one array, 0 at keys that did not exist yet."""
    n_keys = max(row.shape[-1] for rows in layers for row in rows)
    padded = [
        [np.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, n_keys - row.shape[-1])]) for row in rows] for rows in layers
    ]
    return np.stack([np.stack(rows, axis=-2) for rows in padded])
