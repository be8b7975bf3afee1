"""Switches on a forward pass: frozen, hashable, printable specs that compile into one tap.

A spec says what is changed, never how the model is stored; the model itself stays untouched and shared.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.interventions.attention_rows import AttentionEdit, BlockOff, CellOff, RowSet, parse_edit
from transformer.interventions.patching import COPYABLE as COPYABLE
from transformer.interventions.patching import PER_HEAD as PER_HEAD
from transformer.interventions.patching import Copied, parse_copy
from transformer.interventions.patching import activations as activations
from transformer.interventions.positions import LARGEST_SCALE as LARGEST_SCALE
from transformer.interventions.positions import PositionEdit as PositionEdit
from transformer.interventions.positions import PositionsChanged
from transformer.interventions.positions import shuffled as shuffled
from transformer.masks import causal_mask
from transformer.model import Transformer
from transformer.taps import Block, Site, Stack, Tap

MaskKind = Literal["padding", "causal", "cross"]


@runtime_checkable
class Applied(Protocol):
    """What a compiled tap calls at a site."""

    def apply(self, site: Site, tensor: Tensor, /) -> Tensor: ...


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
        return (_site_of_heads(self, model),)

    def apply(self, site: Site, heads: Tensor) -> Tensor:
        """The contexts [batch head query d_head] with the named heads at zero."""
        kept = torch.ones(heads.size(1), dtype=torch.bool, device=heads.device)
        kept[list(self.heads)] = False
        return heads * kept[:, None, None]


@dataclass(frozen=True)
class HeadsMean:
    """Sets the context of some heads to their mean over the validation set, before W_O, at every position; prints
    `mean:decoder.0.cross:1,3`.

    A head at its mean says what it says whatever the sentence; at zero it says something that it never said.
    """

    stack: Stack
    layer: int
    block: Block
    heads: tuple[int, ...]
    means: Float[Tensor, "head d_head"] | None = field(default=None, compare=False, repr=False)
    """Of all heads of the block; `filled` puts them in."""

    needs_recomputation = False

    def __str__(self) -> str:
        return f"mean:{self.stack}.{self.layer}.{self.block}:{','.join(map(str, self.heads))}"

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError where the model has no such heads or the spec would do nothing."""
        return (_site_of_heads(self, model),)

    def filled(self, means: Mapping[str, Tensor]) -> "HeadsMean":
        """The spec with its block's means out of those of the model, by block as in `decoder.0.cross`."""
        return replace(self, means=means[f"{self.stack}.{self.layer}.{self.block}"])

    def apply(self, site: Site, heads: Tensor) -> Tensor:
        """The contexts [batch head query d_head] with the named heads at their means."""
        if self.means is None:
            raise ValueError(f"the means of {self} are not known: resolve it with the lab first")
        heads = heads.clone()
        for head in self.heads:
            heads[:, head] = self.means[head].to(heads)
        return heads


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
        """Where the spec acts; ValueError for an unknown mask, or a causal one that the model does not have."""
        blocks: dict[str, tuple[tuple[str, str], ...]] = {
            "padding": (("encoder", "self"), ("decoder", "self")),
            "causal": (("decoder", "self"),),
            "cross": (("decoder", "cross"),),
        }
        if self.mask not in blocks:
            raise ValueError(f"{self.mask!r} is not a mask; choose one of: {', '.join(blocks)}")
        if self.mask == "causal" and not model.config.causal_mask:
            raise ValueError("this model was trained without a causal mask, so there is none to lift")
        return tuple(s for s in model.sites() if s.tensor == "mask" and (s.stack, s.block) in blocks[self.mask])

    def bound(self, model: Transformer) -> "Applied":
        """The spec for this model, in which the mask that stays may be none at all."""
        return self if model.config.causal_mask else _EverythingSeen()

    def apply(self, site: Site, mask: Tensor) -> Tensor:
        """The mask [batch 1 query key] of a model with a causal mask, this restriction lifted, the others kept."""
        if self.mask == "causal":
            # The last query sees every key that any query may see: what is left is the padding mask.
            return mask.any(dim=-2, keepdim=True).expand_as(mask)
        if (site.stack, site.block) == ("decoder", "self"):
            return causal_mask(mask.size(-2), mask.size(-1), mask.device).expand_as(mask)
        return torch.ones_like(mask)


@dataclass(frozen=True)
class ResidualOff:
    """Adds nothing of a block's input to its output; prints `residual:off:decoder.0.ffn`.

    The block's input still goes into the block itself: what is lost is the way around it (section 3.1).
    """

    stack: Stack
    layer: int
    block: Block

    needs_recomputation = False

    def __str__(self) -> str:
        return f"residual:off:{self.stack}.{self.layer}.{self.block}"

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError where the model has no such block or no residual around it."""
        site = Site(self.stack, self.layer, self.block, "residual")
        if not model.config.residual:
            raise ValueError("this model was trained without residual connections, so there is none to switch off")
        if site not in model.sites():
            raise ValueError(f"this model has no block {self.stack}.{self.layer}.{self.block} with a residual")
        return (site,)

    def apply(self, site: Site, residual: Tensor) -> Tensor:
        """Zeros in place of what is added to the block's output [batch query d_model]."""
        return torch.zeros_like(residual)


Intervention = HeadsOff | HeadsMean | MaskOff | ResidualOff | PositionsChanged | AttentionEdit | Copied


def parse_intervention(text: str) -> Intervention:
    """The spec that prints as `text`; ValueError if none does."""
    match text.split(":"):
        case [("off" | "mean") as to, address, heads]:
            site = Site.parse(f"{address}.heads")
            if site.layer is not None and site.block in ("self", "cross") and _whole_numbers(heads):
                chosen = tuple(sorted({int(n) for n in heads.split(",")}))
                return (HeadsOff if to == "off" else HeadsMean)(site.stack, site.layer, site.block, chosen)
        case ["mask", ("padding" | "causal" | "cross") as mask]:
            return MaskOff(mask)
        case ["residual", "off", address]:
            site = Site.parse(f"{address}.residual")
            if site.layer is not None and site.block is not None:
                return ResidualOff(site.stack, site.layer, site.block)
        case ["positions", ("encoder" | "decoder") as stack, "remove"]:
            return PositionsChanged(stack, "remove")
        case ["positions", ("encoder" | "decoder") as stack, "same", tokens] if _whole_numbers(tokens):
            return PositionsChanged(stack, "same", tokens=tuple(sorted({int(n) for n in tokens.split(",")})))
        case ["positions", ("encoder" | "decoder") as stack, ("shuffle" | "shift") as edit, n] if _whole_numbers(n):
            if "," not in n:
                return PositionsChanged(stack, edit, int(n))
        case ["positions", ("encoder" | "decoder") as stack, "scale", factor]:
            try:
                value = float(factor)
            except ValueError:
                value = math.nan
            if math.isfinite(value):
                return PositionsChanged(stack, "scale", value)
    if (edit := parse_edit(text) or parse_copy(text)) is not None:
        return edit
    raise ValueError(
        f"{text!r} is not a switch; "
        "one looks like off:decoder.0.cross:1,3 or mask:causal or positions:encoder:shuffle:1"
    )


def _whole_numbers(text: str) -> bool:
    return all(n.isascii() and n.isdecimal() and len(n) < 7 for n in text.split(","))


def compile_interventions(specs: Iterable[Intervention], model: Transformer) -> Tap | None:
    """One tap that applies all specs, each checked against the model and the others; None for no spec."""
    ordered = sorted(dict.fromkeys(specs), key=_order)
    at_site: dict[Site, list[Applied]] = {}
    for spec in ordered:
        for site in spec.sites(model):
            if site.tensor == "positions" and site in at_site:
                raise ValueError(f"{spec} changes positions of the {site.stack} that another switch changes already")
            bound = spec.bound(model) if isinstance(spec, PositionsChanged | MaskOff) else spec
            at_site.setdefault(site, []).append(bound)
    _check_rows(ordered)
    return _Interventions(at_site, any(spec.needs_recomputation for spec in ordered)) if ordered else None


def check_source(spec: Intervention, n_tokens: int) -> None:
    """ValueError where a spec names positions that a source of so many tokens (end mark included) does not have."""
    if isinstance(spec, CellOff | RowSet | Copied):
        spec.check_source(n_tokens)


def _order(spec: Intervention) -> tuple[bool, bool, bool]:
    """Copies come first, and what is closed or set to zero comes last, so that it stays so. Lifting the padding mask
    rebuilds the causal one, so it comes before lifting that."""
    closes = isinstance(spec, CellOff | HeadsOff | BlockOff | ResidualOff)
    return not isinstance(spec, Copied), closes, spec.needs_recomputation


def _check_rows(specs: Sequence[Intervention]) -> None:
    """ValueError where one switch forbids a cell on which another puts weight."""
    closed = {(s.stack, s.layer, s.block, s.query, s.key) for s in specs if isinstance(s, CellOff)}
    for spec in specs:
        if isinstance(spec, RowSet):
            for key, weight in enumerate(spec.weights):
                if weight and (spec.stack, spec.layer, spec.block, spec.query, key) in closed:
                    raise ValueError(
                        f"{spec} puts weight on key {key}, which another switch forbids to row {spec.query}"
                    )


def _site_of_heads(spec: HeadsOff | HeadsMean, model: Transformer) -> Site:
    site = Site(spec.stack, spec.layer, spec.block, "heads")
    if site not in model.sites():
        raise ValueError(f"this model has no attention block {spec.stack}.{spec.layer}.{spec.block}")
    if not spec.heads:
        raise ValueError(f"{spec} names no head and would do nothing")
    n_heads = model.config.n_heads
    missing = [head for head in spec.heads if not 0 <= head < n_heads]
    if missing:
        raise ValueError(f"head {missing[0]} does not exist: this model has heads 0 to {n_heads - 1}")
    return site


@dataclass(frozen=True)
class _Interventions:
    at_site: Mapping[Site, Sequence[Applied]]
    needs_recomputation: bool

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        for spec in self.at_site.get(site, ()):
            tensor = spec.apply(site, tensor)
        return tensor


@dataclass(frozen=True)
class _EverythingSeen:
    def apply(self, site: Site, mask: Tensor) -> Tensor:
        return torch.ones_like(mask)
