"""The addresses of heads in a model, and the callback with which work on all of them reports its progress."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer.interventions import AblateHeads
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Stack, Sublayer
from transformer.model.transformer import Transformer

Tell = Callable[[float], object]
"""Receives the share of the work that is done; an exception that it raises ends the work."""


@dataclass(frozen=True, order=True)
class HeadAt:
    """The address of a head."""

    stack: Stack
    layer: int
    sublayer: Sublayer
    head: int

    @classmethod
    def parse(cls, text: str) -> "HeadAt":
        """Reads an address such as "decoder.1.cross.2"; ValueError for anything else."""
        match text.split("."):
            case [("encoder" | "decoder") as stack, layer, ("self" | "cross") as sublayer, head]:
                return cls(stack, int(layer), sublayer, int(head))
        raise ValueError(f"{text!r} is no address of a head: it is written as in decoder.1.cross.2")

    @property
    def kind(self) -> AttentionKind:
        """The kind of attention that it belongs to."""
        return AttentionKind.at(self.stack, self.sublayer)

    @property
    def switch(self) -> AblateHeads:
        """The intervention that takes it out of a pass."""
        return AblateHeads(self.stack, self.layer, self.sublayer, (self.head,))

    def __str__(self) -> str:
        return f"{self.stack}.{self.layer}.{self.sublayer}.{self.head}"


def sublayers_of(model: Transformer) -> tuple[tuple[HeadAt, ...], ...]:
    """Returns the heads of each block of attention: encoder, decoder self, cross, layer by layer."""
    heads = sorted(heads_of(model), key=lambda at: (at.stack != "encoder", at.sublayer == "cross", at.layer, at.head))
    n = model.config.n_heads
    return tuple(tuple(heads[start : start + n]) for start in range(0, len(heads), n))


def heads_of(model: Transformer) -> tuple[HeadAt, ...]:
    """Returns every head of a model, in the order of a pass."""
    return tuple(
        HeadAt(site.stack, site.layer, site.sublayer, head)  # type: ignore[arg-type]
        for site in model.sites()
        if site.tensor == "heads"
        for head in range(model.config.n_heads)
    )
