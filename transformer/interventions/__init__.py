"""Interventions on a forward pass: frozen, hashable, printable specs that compile into one tap.

A spec says what is changed, never how the model is stored; the model itself stays untouched and shared. What all of
them have in common stands in protocol.py, what a set of them comes to in compiling.py.
"""

from transformer.interventions.attention_rows import MaskEntry, SetAttentionRow
from transformer.interventions.compiling import compile_interventions, merged, superseded_notes
from transformer.interventions.heads import AblateHeads, MeanAblateHeads, OfHeads, ScaleHeads
from transformer.interventions.masks import DisableMask
from transformer.interventions.patching import COPYABLE, PER_HEAD, PatchActivation, activations
from transformer.interventions.positions import LARGEST_SCALE, EditPositions, PositionEdit, shuffled
from transformer.interventions.protocol import (
    Intervention,
    MaskKind,
    OverwrittenRow,
    Replaced,
    factors_of_heads,
    heads_set_to,
)
from transformer.interventions.sublayers import AblateResidual, AblateSublayer

__all__ = [
    "COPYABLE",
    "INTERVENTIONS",
    "LARGEST_SCALE",
    "PER_HEAD",
    "AblateHeads",
    "AblateResidual",
    "AblateSublayer",
    "DisableMask",
    "EditPositions",
    "Intervention",
    "MaskEntry",
    "MaskKind",
    "MeanAblateHeads",
    "OfHeads",
    "OverwrittenRow",
    "PositionEdit",
    "Replaced",
    "ScaleHeads",
    "SetAttentionRow",
    "activations",
    "compile_interventions",
    "factors_of_heads",
    "heads_set_to",
    "merged",
    "parse_intervention",
    "shuffled",
    "superseded_notes",
]

INTERVENTIONS: tuple[type[Intervention], ...] = (
    AblateHeads,
    MeanAblateHeads,
    ScaleHeads,
    AblateSublayer,
    AblateResidual,
    DisableMask,
    MaskEntry,
    SetAttentionRow,
    PatchActivation,
    EditPositions,
)
"""Every intervention there is, in the order in which they are explained."""

_BY_PREFIX = {kind.prefix: kind for kind in INTERVENTIONS}


def parse_intervention(text: str) -> Intervention:
    """The spec that prints as `text`; ValueError if none does."""
    kind = _BY_PREFIX.get(text.split(":")[0])
    if kind is not None and (spec := kind.parse(text)) is not None:
        return spec
    raise ValueError(
        f"{text!r} is not a switch; "
        "one looks like off:decoder.0.cross:1,3 or mask:causal or positions:encoder:shuffle:1"
    )
