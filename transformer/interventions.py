"""Switches on a forward pass: frozen, hashable, printable specs that compile into one tap.

A spec says what is changed, never how the model is stored; the model itself stays untouched and shared.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transformer.masks import causal_mask
from transformer.model import Transformer
from transformer.taps import Block, Site, Stack, Tap

MaskKind = Literal["padding", "causal", "cross"]


@dataclass(frozen=True)
class HeadsOff:
    """Sets the context of some heads of one attention block to zero, before W_O; prints `off:decoder.0.cross:1,3`."""

    stack: Stack
    layer: int
    block: Block
    heads: tuple[int, ...]

    needs_recomputation = False

    def __str__(self) -> str:
        return f"off:{self.stack}.{self.layer}.{self.block}:{','.join(map(str, self.heads))}"

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError where the model has no such heads or the spec would do nothing."""
        site = Site(self.stack, self.layer, self.block, "heads")
        if site not in model.sites():
            raise ValueError(f"this model has no attention block {self.stack}.{self.layer}.{self.block}")
        if not self.heads:
            raise ValueError(f"{self} names no head and would do nothing")
        n_heads = model.config.n_heads
        missing = [head for head in self.heads if not 0 <= head < n_heads]
        if missing:
            raise ValueError(f"head {missing[0]} does not exist: this model has heads 0 to {n_heads - 1}")
        return (site,)

    def apply(self, site: Site, heads: Tensor) -> Tensor:
        """The contexts [batch head query d_head] with the named heads at zero."""
        kept = torch.ones(heads.size(1), dtype=torch.bool, device=heads.device)
        kept[list(self.heads)] = False
        return heads * kept[:, None, None]


@dataclass(frozen=True)
class MaskOff:
    """Lifts one mask in every layer; prints `mask:causal`.

    padding: self-attention of encoder and decoder may see padded keys. causal: a decoder position may see later ones.
    cross: the decoder may see padded source positions.
    """

    mask: MaskKind

    def __str__(self) -> str:
        return f"mask:{self.mask}"

    @property
    def needs_recomputation(self) -> bool:
        """True for the causal mask: without it earlier states depend on later tokens."""
        return self.mask == "causal"

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError for an unknown mask."""
        blocks: dict[str, tuple[tuple[str, str], ...]] = {
            "padding": (("encoder", "self"), ("decoder", "self")),
            "causal": (("decoder", "self"),),
            "cross": (("decoder", "cross"),),
        }
        if self.mask not in blocks:
            raise ValueError(f"{self.mask!r} is not a mask; choose one of: {', '.join(blocks)}")
        return tuple(s for s in model.sites() if s.tensor == "mask" and (s.stack, s.block) in blocks[self.mask])

    def apply(self, site: Site, mask: Tensor) -> Tensor:
        """The mask [batch 1 query key] with this restriction lifted, the others kept."""
        if self.mask == "causal":
            # The last query sees every key that any query may see: what is left is the padding mask.
            return mask.any(dim=-2, keepdim=True).expand_as(mask)
        if (site.stack, site.block) == ("decoder", "self"):
            return causal_mask(mask.size(-2), mask.size(-1), mask.device).expand_as(mask)
        return torch.ones_like(mask)


Intervention = HeadsOff | MaskOff


def parse_intervention(text: str) -> Intervention:
    """The spec that prints as `text`; ValueError if none does."""
    match text.split(":"):
        case ["off", address, heads]:
            site = Site.parse(f"{address}.heads")
            numbers = heads.split(",")
            if site.layer is not None and site.block in ("self", "cross") and all(n.isdecimal() for n in numbers):
                return HeadsOff(site.stack, site.layer, site.block, tuple(sorted({int(n) for n in numbers})))
        case ["mask", ("padding" | "causal" | "cross") as mask]:
            return MaskOff(mask)
    raise ValueError(f"{text!r} is not a switch; one looks like off:decoder.0.cross:1,3 or mask:causal")


def compile_interventions(specs: Iterable[Intervention], model: Transformer) -> Tap | None:
    """One tap that applies all specs, each checked against the model; None for no spec."""
    # Lifting the padding mask rebuilds the causal one, so it comes before lifting that.
    ordered = sorted(dict.fromkeys(specs), key=lambda spec: spec.needs_recomputation)
    at_site: dict[Site, list[Intervention]] = {}
    for spec in ordered:
        for site in spec.sites(model):
            at_site.setdefault(site, []).append(spec)
    return _Interventions(at_site, any(spec.needs_recomputation for spec in ordered)) if ordered else None


@dataclass(frozen=True)
class _Interventions:
    at_site: dict[Site, Sequence[Intervention]]
    needs_recomputation: bool

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        for spec in self.at_site.get(site, ()):
            tensor = spec.apply(site, tensor)
        return tensor
