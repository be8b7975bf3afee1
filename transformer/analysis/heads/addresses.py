"""Where heads stand in a model, and how long work on all of them reports its progress."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer.interventions import AblateHeads
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Stack, Sublayer
from transformer.model.transformer import Transformer

Tell = Callable[[float], object]
"""Is told which share of the work is done; what it raises ends the work."""


@dataclass(frozen=True, order=True)
class HeadAt:
    """Where a head stands."""

    stack: Stack
    layer: int
    sublayer: Sublayer
    head: int

    @property
    def kind(self) -> AttentionKind:
        """Of which attention it is a part."""
        return AttentionKind.at(self.stack, self.sublayer)

    @property
    def switch(self) -> AblateHeads:
        """What takes it out of a pass."""
        return AblateHeads(self.stack, self.layer, self.sublayer, (self.head,))

    def __str__(self) -> str:
        return f"{self.stack}.{self.layer}.{self.sublayer}.{self.head}"


def sublayers_of(model: Transformer) -> tuple[tuple[HeadAt, ...], ...]:
    """The heads of each block of attention: encoder, decoder self, cross, layer by layer."""
    heads = sorted(heads_of(model), key=lambda at: (at.stack != "encoder", at.sublayer == "cross", at.layer, at.head))
    n = model.config.n_heads
    return tuple(tuple(heads[start : start + n]) for start in range(0, len(heads), n))


def heads_of(model: Transformer) -> tuple[HeadAt, ...]:
    """Every head of a model, in the order in which a pass comes by."""
    return tuple(
        HeadAt(site.stack, site.layer, site.sublayer, head)  # type: ignore[arg-type]
        for site in model.sites()
        if site.tensor == "heads"
        for head in range(model.config.n_heads)
    )
