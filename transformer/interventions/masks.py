"""Masks lifted in every layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from transformer.interventions.protocol import Applied, Intervention, MaskKind
from transformer.model.kinds import AttentionKind
from transformer.model.mask_rules import MASK_RULES, MaskRule, rules_of
from transformer.model.masks import open_to
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site

_RULES = {rule.name: rule for rule in MASK_RULES}
_PADDING = {
    "padding": ("padding mask", (AttentionKind.ENCODER_SELF, AttentionKind.DECODER_SELF)),
    "cross": ("cross-attention's padding mask", (AttentionKind.CROSS,)),
}
_PADDING_NOTE = (
    "A padding mask hides the empty places that make sentences of a batch equally long. One sentence alone has none, "
    "so there is nothing for it to hide and nothing to change."
)


@dataclass(frozen=True)
class DisableMask(Intervention):
    """Lifts one mask in every layer; prints `mask:causal`.

    padding: self-attention of encoder and decoder may see padded keys. causal: a decoder position may see later ones.
    cross: the decoder may see padded source positions. window: self-attention may see tokens at any distance.
    """

    mask: MaskKind

    prefix = "mask"
    usage = (
        "`mask:causal` the causal mask lifted; `mask:padding`, `mask:cross` those over empty places; `mask:window` the "
        "window of a model that has one"
    )

    @classmethod
    def parse(cls, text: str) -> "DisableMask | None":
        match text.split(":"):
            case [_, mask] if mask in get_args(MaskKind):
                return cls(mask)  # type: ignore[arg-type]
        return None

    def __str__(self) -> str:
        return f"mask:{self.mask}"

    @property
    def needs_recomputation(self) -> bool:
        """True for the causal mask: without it earlier states depend on later tokens."""
        return self._rule is not None and self._rule.needs_recomputation

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the sites of the mask; ValueError for a mask that is unknown or that the model does not have."""
        if self.mask not in (names := (*_PADDING, *_RULES)):
            raise ValueError(f"{self.mask!r} is not a mask; choose one of: {', '.join(names)}")
        name, rule = self._name, self._rule
        found = [s for s in model.sites() if s.tensor == "mask" and _kind(s) in self._kinds]
        if not found:
            raise ValueError(f"this model has no attention with a {name}, so there is none to lift")
        if rule is not None and not any(rule in rules_of(model.config, kind) for kind in self._kinds):
            raise ValueError(f"this model was trained without a {name}, so there is none to lift")
        return tuple(found)

    def bound(self, model: Seq2Seq, others: Sequence[Intervention] = ()) -> Applied:
        """Returns the masks of this model without all that are lifted in the same pass."""
        return _Lifted(model, self.lifts.union(*(other.lifts for other in others)))

    def apply(self, site: Site, mask: Tensor, /) -> Tensor:
        """Raises TypeError: what stays depends on the model, see `bound`."""
        raise TypeError("a mask is lifted from a model: call bound first")

    @property
    def lifts(self) -> frozenset[MaskKind]:
        return frozenset({self.mask})

    def label(self) -> str:
        return f"{self._name} off"

    @property
    def notes(self) -> tuple[str, ...]:
        return (_PADDING_NOTE if self._rule is None else self._rule.note,)

    @property
    def _rule(self) -> MaskRule | None:
        """The rule that it lifts; None for padding."""
        return _RULES.get(self.mask)  # type: ignore[call-overload]

    @property
    def _name(self) -> str:
        return _PADDING[self.mask][0] if self._rule is None else self._rule.label

    @property
    def _kinds(self) -> tuple[AttentionKind, ...]:
        if self._rule is None:
            return _PADDING[self.mask][1]
        return tuple(kind for kind in AttentionKind if self._rule.is_on(kind))


@dataclass(frozen=True)
class _Lifted:
    """The masks of a model without some of them: applied twice it does what it does once."""

    model: Seq2Seq
    lifts: frozenset[MaskKind]

    def apply(self, site: Site, mask: Tensor) -> Tensor:
        """The mask [batch 1 query key], these restrictions lifted, the others kept."""
        kind, (n_query, n_key) = _kind(site), mask.shape[-2:]
        rules, left = (
            open_to(self.model.config, kind, n_query, n_key, but=but, device=mask.device) for but in ((), self.lifts)
        )
        if ("cross" if kind is AttentionKind.CROSS else "padding") in self.lifts:
            real = torch.ones_like(mask)
        else:  # A key that some query sees is no padding; one that the rules hide from all may be taken for a token.
            seen = mask.any(dim=-2, keepdim=True)
            real = (seen if rules is None else seen | ~rules.any(dim=-2)).expand_as(mask)
        return real if left is None else real & left


def _kind(site: Site) -> AttentionKind:
    return AttentionKind.at(site.stack, site.sublayer or "")
