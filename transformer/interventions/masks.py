"""Masks lifted in every layer."""

from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from transformer.interventions.protocol import Applied, Intervention, MaskKind
from transformer.model.masks import causal_mask
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site

_NAMES = {"causal": "causal mask", "padding": "padding mask", "cross": "cross-attention's padding mask"}
_NOTES = {
    "causal": "Without the causal mask every position sees later ones, so what was computed at earlier steps is out of "
    "date at each new token. The key/value cache is therefore not used: each step passes the whole prefix "
    "again. The decoder self-attention shown is the last of these passes.",
    "padding": "A padding mask hides the empty places that make sentences of a batch equally long. One sentence alone "
    "has none, so there is nothing for it to hide and nothing to change.",
}


@dataclass(frozen=True)
class DisableMask(Intervention):
    """Lifts one mask in every layer; prints `mask:causal`.

    padding: self-attention of encoder and decoder may see padded keys. causal: a decoder position may see later ones.
    cross: the decoder may see padded source positions.
    """

    mask: MaskKind

    prefix = "mask"
    usage = "`mask:causal` the causal mask lifted; `mask:padding`, `mask:cross` those over empty places"

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
        return self.mask == "causal"

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the sites of the mask; ValueError for a mask that is unknown or that the model does not have."""
        sublayers: dict[str, tuple[tuple[str, str], ...]] = {
            "padding": (("encoder", "self"), ("decoder", "self")),
            "causal": (("decoder", "self"),),
            "cross": (("decoder", "cross"),),
        }
        if self.mask not in sublayers:
            raise ValueError(f"{self.mask!r} is not a mask; choose one of: {', '.join(sublayers)}")
        if self.mask == "causal" and model.needs_recomputation():
            raise ValueError("this model was trained without a causal mask, so there is none to lift")
        found = [s for s in model.sites() if s.tensor == "mask" and (s.stack, s.sublayer) in sublayers[self.mask]]
        if not found:
            raise ValueError(f"this model has no attention with a {_NAMES[self.mask]}, so there is none to lift")
        return tuple(found)

    def bound(self, model: Seq2Seq) -> Applied:
        """The spec for this model, in which the mask that stays may be none at all."""
        return _EverythingSeen() if model.needs_recomputation() else self

    def apply(self, site: Site, mask: Tensor, /) -> Tensor:
        """The mask [batch 1 query key] of a model with a causal mask, this restriction lifted, the others kept."""
        if self.mask == "causal":
            # The last query sees every key that any query may see: what is left is the padding mask.
            return mask.any(dim=-2, keepdim=True).expand_as(mask)
        if (site.stack, site.sublayer) == ("decoder", "self"):
            return causal_mask(mask.size(-2), mask.size(-1), mask.device).expand_as(mask)
        return torch.ones_like(mask)

    @property
    def lifts(self) -> frozenset[MaskKind]:
        return frozenset({self.mask})

    def label(self) -> str:
        return f"{_NAMES[self.mask]} off"

    @property
    def notes(self) -> tuple[str, ...]:
        return (_NOTES["causal" if self.mask == "causal" else "padding"],)


@dataclass(frozen=True)
class _EverythingSeen:
    def apply(self, site: Site, mask: Tensor) -> Tensor:
        return torch.ones_like(mask)
