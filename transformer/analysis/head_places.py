"""Where heads stand in a model, and how long work on all of them reports its progress."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer.analysis.head_patterns import Kind
from transformer.interventions import HeadsOff
from transformer.model import Transformer
from transformer.taps import Block, Stack

KINDS: dict[Kind, tuple[Stack, Block]] = {
    "encoder_self": ("encoder", "self"),
    "decoder_self": ("decoder", "self"),
    "cross": ("decoder", "cross"),
}
Tell = Callable[[float], object]
"""Is told which share of the work is done; what it raises ends the work."""


@dataclass(frozen=True, order=True)
class HeadAt:
    """Where a head stands."""

    stack: Stack
    layer: int
    block: Block
    head: int

    @property
    def kind(self) -> Kind:
        """Of which attention it is a part."""
        return "cross" if self.block == "cross" else "encoder_self" if self.stack == "encoder" else "decoder_self"

    @property
    def switch(self) -> HeadsOff:
        """What takes it out of a pass."""
        return HeadsOff(self.stack, self.layer, self.block, (self.head,))

    def __str__(self) -> str:
        return f"{self.stack}.{self.layer}.{self.block}.{self.head}"


def blocks_of(model: Transformer) -> tuple[tuple[HeadAt, ...], ...]:
    """The heads of each block of attention: encoder, decoder self, cross, layer by layer."""
    heads = sorted(heads_of(model), key=lambda at: (at.stack != "encoder", at.block == "cross", at.layer, at.head))
    n = model.config.n_heads
    return tuple(tuple(heads[start : start + n]) for start in range(0, len(heads), n))


def heads_of(model: Transformer) -> tuple[HeadAt, ...]:
    """Every head of a model, in the order in which a pass comes by."""
    return tuple(
        HeadAt(site.stack, site.layer, site.block, head)  # type: ignore[arg-type]
        for site in model.sites()
        if site.tensor == "heads"
        for head in range(model.config.n_heads)
    )
