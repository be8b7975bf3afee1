"""Switches on a forward pass: frozen, hashable, printable specs that compile into one tap.

A spec says what is changed, never how the model is stored; the model itself stays untouched and shared.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from transformer.attention_edits import AttentionEdit, CellOff, parse_edit
from transformer.masks import causal_mask
from transformer.model import Transformer
from transformer.positions import LearnedPositions, sinusoidal_table
from transformer.taps import Block, Site, Stack, Tap

MaskKind = Literal["padding", "causal", "cross"]
PositionEdit = Literal["remove", "shuffle", "shift", "scale", "same"]
LARGEST_SCALE = 100


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


@dataclass(frozen=True)
class PositionsChanged:
    """Changes what is added to the embeddings of one stack to say where each token stands.

    Prints `positions:encoder:remove`, `positions:encoder:shuffle:7` (a seed), `positions:encoder:shift:3`,
    `positions:decoder:scale:0.5` or `positions:encoder:same:2,5`.
    """

    stack: Stack
    edit: PositionEdit
    value: int | float = 0
    """Of shift: by how many positions. Of scale: the factor. Of shuffle: the seed of the order."""
    tokens: tuple[int, ...] = ()
    """Of same: the two tokens that are to stand where the first of them stands."""

    def __str__(self) -> str:
        value = str(int(self.value)) if self.value == int(self.value) else repr(self.value)
        value = ",".join(map(str, self.tokens)) if self.edit == "same" else value
        return f"positions:{self.stack}:{self.edit}" + f":{value}" * (self.edit != "remove")

    @property
    def needs_recomputation(self) -> bool:
        """True where a row depends on its place: a cached decoder sees its newest position alone."""
        return self.stack == "decoder" and self.edit in ("shift", "same")

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError where the model adds no positions or the spec would do nothing."""
        site = Site(self.stack, None, None, "positions")
        if site not in model.sites():
            raise ValueError(
                f"this model adds no positions to its embeddings: it has {model.config.positions} positions"
            )
        rows = model.config.max_length
        match self.edit:
            case "shuffle" if self.stack == "decoder":
                raise ValueError("the decoder's positions cannot be shuffled: its length is known only at the end")
            case "shift" if not (1 <= self.value < rows and self.value == int(self.value)):
                raise ValueError(f"a shift ({self.value:g}) must be a whole number from 1 to {rows - 1}")
            case "scale" if not 0 < self.value <= LARGEST_SCALE or self.value == 1:
                raise ValueError(f"a scale ({self.value:g}) must lie above 0, at most at {LARGEST_SCALE}, and not be 1")
            case "same" if len(set(self.tokens)) != 2 or not all(0 <= token < rows for token in self.tokens):
                raise ValueError(f"{self} must name two different tokens from 0 to {rows - 1}")
        return (site,)

    def bound(self, model: Transformer) -> "Applied":
        """The spec with what it needs of the model: the table, whose rows a shift looks up."""
        positions = getattr(model, self.stack).embedding.positions
        return _PositionsOf(self, positions.table.detach(), isinstance(positions, LearnedPositions))

    def apply(self, site: Site, rows: Tensor) -> Tensor:
        """The rows [batch length d_model], from position 0 on, changed; a shift needs `bound` first."""
        match self.edit:
            case "remove":
                return torch.zeros_like(rows)
            case "scale":
                return rows * self.value
            case "shuffle":
                return rows[:, shuffled(rows.size(1), int(self.value))]
            case "same":
                return self._same(rows)
            case "shift":
                raise AssertionError("a shift is applied through `bound`")

    def _same(self, rows: Tensor) -> Tensor:
        first, second = sorted(self.tokens)
        if second >= rows.size(1):
            if self.stack == "decoder":  # not written yet
                return rows
            raise ValueError(f"token {second} does not exist: the sentence has tokens 0 to {rows.size(1) - 1}")
        rows = rows.clone()
        rows[:, second] = rows[:, first]
        return rows


def shuffled(length: int, seed: int) -> list[int]:
    """A random order of so many positions, never the one that they have (but for a single one)."""
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed)).tolist()
    return order if order != sorted(order) else order[1:] + order[:1]


Intervention = HeadsOff | MaskOff | ResidualOff | PositionsChanged | AttentionEdit


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
    if (edit := parse_edit(text)) is not None:
        return edit
    raise ValueError(
        f"{text!r} is not a switch; "
        "one looks like off:decoder.0.cross:1,3 or mask:causal or positions:encoder:shuffle:1"
    )


def _whole_numbers(text: str) -> bool:
    return all(n.isascii() and n.isdecimal() and len(n) < 7 for n in text.split(","))


def compile_interventions(specs: Iterable[Intervention], model: Transformer) -> Tap | None:
    """One tap that applies all specs, each checked against the model; None for no spec."""
    # Lifting the padding mask rebuilds the causal one, so it comes before lifting that; then single cells are closed.
    ordered = sorted(dict.fromkeys(specs), key=lambda spec: (isinstance(spec, CellOff), spec.needs_recomputation))
    at_site: dict[Site, list[Applied]] = {}
    for spec in ordered:
        for site in spec.sites(model):
            if site.tensor == "positions" and site in at_site:
                raise ValueError(f"{spec} changes positions of the {site.stack} that another switch changes already")
            bound = spec.bound(model) if isinstance(spec, PositionsChanged | MaskOff) else spec
            at_site.setdefault(site, []).append(bound)
    return _Interventions(at_site, any(spec.needs_recomputation for spec in ordered)) if ordered else None


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


@dataclass(frozen=True)
class _PositionsOf:
    spec: PositionsChanged
    table: Tensor
    learned: bool

    def apply(self, site: Site, rows: Tensor) -> Tensor:
        if self.spec.edit != "shift":
            return self.spec.apply(site, rows)
        k, length = int(self.spec.value), rows.size(1)
        if self.learned:  # a learned table ends: what stands past it takes its last row
            shifted = self.table[torch.arange(k, k + length).clamp(max=len(self.table) - 1)]
        else:
            shifted = sinusoidal_table(k + length, rows.size(-1), dtype=rows.dtype)[k:].to(rows.device)
        return shifted.expand_as(rows)
