"""Heads and rows of attention whose weights have no effect, because an intervention replaced what they gathered."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.inspection.inspection import Inspection
from transformer.interventions import Intervention
from transformer.interventions.protocol import ReplacedBy
from transformer.model.kinds import AttentionKind, KindName

_ALL = slice(None)


def heads_replaced(seen: Inspection, kind: KindName, by: Sequence[ReplacedBy]) -> Bool[ndarray, "layer head"]:
    """Returns which heads have their whole context, or their block's output, replaced in one of these ways."""
    found = np.zeros(seen.attention(kind).weights.shape[:2], dtype=bool)
    for spec in seen.interventions:
        replaced = spec.replaced
        if replaced is None or replaced.by not in by or replaced.positions is not None:
            continue
        if spec.acts_in(*AttentionKind(kind).where) and replaced.tensor in ("heads", "output"):
            assert spec.address is not None and spec.address.layer is not None, "it acts in a block"
            found[spec.address.layer, _ALL if replaced.heads is None else list(replaced.heads)] = True
    return found


def effective_weights(seen: Inspection, kind: KindName) -> Float[ndarray, "layer head query key"]:
    """Returns the weights as they count in what goes on: zero where nothing of what is attended to goes any further,
    and those of a scaled head times its factor."""
    weights = seen.attention(kind).weights.copy()
    for spec in seen.interventions:
        if spec.head_factors and spec.acts_in(*AttentionKind(kind).where):
            assert spec.address is not None and spec.address.layer is not None, "it acts in a block"
            for head, factor in spec.head_factors.items():
                weights[spec.address.layer, head] *= factor
    for _, at in silenced(seen, kind):
        weights[at] = 0
    return weights


def silenced(seen: Inspection, kind: KindName) -> list[tuple[Intervention, tuple[Any, ...]]]:
    """Returns the interventions after the softmax, each with the layer, heads, queries and keys that it makes idle."""
    n_queries, n_keys = seen.attention(kind).weights.shape[2:]
    found: list[tuple[Intervention, tuple[Any, ...]]] = []
    for spec in seen.interventions:
        replaced = spec.replaced
        if (
            replaced is None
            or replaced.tensor not in ("heads", "output", "v")
            or not spec.acts_in(*AttentionKind(kind).where)
        ):
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


def residuals(seen: Inspection, kind: KindName, built_with: bool) -> list[bool]:
    """Returns, for each layer, whether its block has a residual; `built_with`: whether the model has them at all."""
    gone = {
        spec.address.layer
        for spec in seen.interventions
        if spec.address is not None and spec.acts_in(*AttentionKind(kind).where)
        if (found := spec.replaced) is not None and (found.tensor, found.by) == ("residual", "zero")
    }
    return [built_with and layer not in gone for layer in range(len(seen.attention(kind).weights))]
