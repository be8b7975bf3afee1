"""Heads of one attention block at zero, at their mean or scaled."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.interventions.names import plural
from transformer.interventions.protocol import (
    AtBlock,
    Intervention,
    Replaced,
    Resources,
    are_whole_numbers,
    parse_sublayer,
)
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site

MAX_FACTOR = 2.0
"""The largest factor by which heads can be scaled."""


@dataclass(frozen=True)
class OfHeads(AtBlock):
    """Some heads of one attention block whose context is changed before W_O; of two for one head the last counts."""

    heads: tuple[int, ...]

    rank: ClassVar[int]
    """Its place among those of one block."""
    to: ClassVar[str]
    """The fate of the heads, in a word."""

    @classmethod
    def parse(cls, text: str) -> "Intervention | None":
        match text.split(":"):
            case [cls.prefix, address, heads] if are_whole_numbers(heads):
                if (sublayer := parse_sublayer(address, attention=True)) is not None:
                    return cls(*sublayer, tuple(sorted({int(n) for n in heads.split(",")})))
        return None

    def __str__(self) -> str:
        return f"{self.prefix}:{self.where}:{','.join(map(str, self.heads))}"

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        site = self.address.site("heads")
        if site not in model.sites():
            raise ValueError(f"this model has no attention block {self.where}")
        if not self.heads:
            raise ValueError(f"{self} names no head and would do nothing")
        n_heads = model.config.n_heads
        missing = [head for head in self.heads if not 0 <= head < n_heads]
        if missing:
            raise ValueError(f"head {missing[0]} does not exist: this model has heads 0 to {n_heads - 1}")
        return (site,)

    def parts(self) -> tuple[Intervention, ...]:
        return tuple(replace(self, heads=(head,)) for head in self.heads)

    def replaces(self, other: Intervention) -> bool:
        return isinstance(other, OfHeads) and other.address == self.address and bool({*self.heads} & {*other.heads})

    @property
    def group(self) -> tuple[str | float, ...]:
        return (self.stack, self.layer, self.sublayer, self.rank)

    def joined(self, others: Sequence[Intervention]) -> Intervention:
        heads = {head for spec in (self, *others) if isinstance(spec, OfHeads) for head in spec.heads}
        return replace(self, heads=tuple(sorted(heads)))

    @property
    def _heads_in_words(self) -> str:
        return f"{plural(len(self.heads), 'head')} {', '.join(map(str, self.heads))}"


@dataclass(frozen=True)
class AblateHeads(OfHeads):
    """Sets the context of some heads of one attention block to zero, before W_O; prints `off:decoder.0.cross:1,3`."""

    prefix = "off"
    usage = "`off:decoder.0.cross:1,3` heads 1 and 3 to zero"
    order = 2
    rank = 0
    to = "zero"

    def apply(self, site: Site, heads: Tensor, /) -> Tensor:
        """The contexts [batch head query d_head] with the named heads at zero."""
        kept = torch.ones(heads.size(1), dtype=torch.bool, device=heads.device)
        kept[list(self.heads)] = False
        return heads * kept[:, None, None]

    @property
    def replaced(self) -> Replaced:
        return Replaced("heads", "zero", self.heads)

    def label(self) -> str:
        return f"{self.where_in_words} · {self._heads_in_words} off"


@dataclass(frozen=True)
class MeanAblateHeads(OfHeads):
    """Sets the context of some heads to their mean over the validation set, before W_O, at every position; prints
    `mean:decoder.0.cross:1,3`.

    At its mean a head gives what it gives whatever the sentence; zero is a value the head never produces.
    """

    means: Float[Tensor, "head d_head"] | None = field(default=None, compare=False, repr=False)
    """The means of all heads of the block, put in by `resolve`."""

    prefix = "mean"
    usage = "`mean:decoder.0.cross:1,3` heads 1 and 3 to their mean"
    preparation = "Taking each head's mean over the validation set"
    rank = 1
    to = "mean"

    def resolve(self, resources: Resources) -> "MeanAblateHeads":
        return self.filled(resources.means_by_sublayer())

    def filled(self, means: Mapping[str, Tensor]) -> "MeanAblateHeads":
        """The spec with its block's means out of those of the model, by block as in `decoder.0.cross`."""
        return replace(self, means=means[self.where])

    def apply(self, site: Site, heads: Tensor, /) -> Tensor:
        """The contexts [batch head query d_head] with the named heads at their means."""
        if self.means is None:
            raise ValueError(f"the means of {self} are not known: resolve it with the lab first")
        heads = heads.clone()
        for head in self.heads:
            heads[:, head] = self.means[head].to(heads)
        return heads

    @property
    def replaced(self) -> Replaced:
        return Replaced("heads", "mean", self.heads)

    def label(self) -> str:
        return f"{self.where_in_words} · {self._heads_in_words} at the mean"


@dataclass(frozen=True)
class ScaleHeads(OfHeads):
    """Multiplies the context of some heads of one attention block by a factor, before W_O; prints
    `scale:decoder.0.cross:1,3:0.5`.

    At 0 the heads are off, at 1 nothing changes, and what they add to the block's output is proportional to it.
    """

    factor: float = field(metadata={"slider": (0.0, MAX_FACTOR, 0.5, 0.05)})

    prefix = "scale"
    usage = "`scale:decoder.0.cross:1,3:0.5` heads 1 and 3 times 0.5"
    title = "Scale"
    action = "Scale these heads"
    hint = "At 0 the heads are off, at 1 nothing changes, at 2 their output doubles; attention weights don't change."
    rank = 2
    to = "scaled"

    @classmethod
    def parse(cls, text: str) -> "ScaleHeads | None":
        match text.split(":"):
            case [cls.prefix, address, heads, factor] if are_whole_numbers(heads):
                sublayer = parse_sublayer(address, attention=True)
                with suppress(ValueError):
                    number = float(factor) + 0.0  # no negative zero
                    return sublayer and cls(*sublayer, tuple(sorted({int(n) for n in heads.split(",")})), number)
        return None

    def __str__(self) -> str:
        return f"{super().__str__()}:{repr(self.factor).removesuffix('.0')}"

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        if not 0 <= self.factor <= MAX_FACTOR:
            raise ValueError(f"the factor of {self} must be a number from 0 to {MAX_FACTOR:g}")
        return super().sites(model)

    @property
    def group(self) -> tuple[str | float, ...]:
        return (*super().group, self.factor)

    def apply(self, site: Site, heads: Tensor, /) -> Tensor:
        """The contexts [batch head query d_head] with the named heads times the factor."""
        factors = heads.new_ones(heads.size(1))
        factors[list(self.heads)] = self.factor
        return heads * factors[:, None, None]

    @property
    def head_factors(self) -> Mapping[int, float]:
        return dict.fromkeys(self.heads, self.factor)

    def idle(self, last_step: int, *, looks_back: bool) -> str:
        return "a factor of 1 changes nothing." if self.factor == 1 else ""

    def label(self) -> str:
        return f"{self.where_in_words} · {self._heads_in_words} times {self.factor:g}"

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"A scaled head's weights are shown as computed; what it gathered goes on times {self.factor:g}.",)
