"""Sublayers as plain decoding computes them.

The bias of a sublayer's last product travels in the residual stream where it can: in post-norm the norm before adds it
to its own, and the first product takes its share off again, so that the sum costs no call.
"""

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.decoding.laid_out import LaidOut, Norm, States, Sublayer
from transformer.model.transformer import Embedding


class Part(NamedTuple):
    """A sublayer as it is computed here."""

    before: Norm | None
    across: Float[Tensor, "inner outer"]
    """The matrix of the first product."""
    bias: Float[Tensor, " outer"]
    """Its bias, less the share of what the stream carries."""
    last: Float[Tensor, "inner d_model"]
    """The matrix of the last product."""
    added: Float[Tensor, " d_model"] | None
    """The bias of the last product; None where the stream carries it."""
    residual: bool
    after: Norm | None

    def open(self, x: States) -> Float[Tensor, "row outer"]:
        """Returns the sublayer's first product."""
        return torch.addmm(self.bias, x if self.before is None else self.before(x), self.across)

    def close(self, x: States, found: Float[Tensor, "row inner"]) -> States:
        """Returns the stream after the sublayer, of which `found` is what the last product reads."""
        if self.added is None:
            x = torch.addmm(x, found, self.last)
        elif self.residual:
            x = (x + self.added).addmm_(found, self.last)
        else:
            x = torch.addmm(self.added, found, self.last)
        return x if self.after is None else self.after(x)


class SourceLayer(NamedTuple):
    own: Part
    ffn: Part
    activation: Callable[[Tensor], Tensor]


class Layer(NamedTuple):
    own: Part
    cross: Part
    ffn: Part
    activation: Callable[[Tensor], Tensor]


class Plan(NamedTuple):
    """All layers of a model; each stack with the bias that its stream carries to begin with."""

    source_layers: list[SourceLayer]
    source_carried: Float[Tensor, " d_model"] | None
    layers: list[Layer]
    carried: Float[Tensor, " d_model"] | None


_PLANS: WeakKeyDictionary[LaidOut, Plan] = WeakKeyDictionary()
"""What was made of weights, as long as they are kept."""


def plan_of(weights: LaidOut) -> Plan:
    """The sublayers made of these weights, once."""
    if weights not in _PLANS:
        _PLANS[weights] = _planned(weights)
    return _PLANS[weights]


@torch.no_grad()
def _planned(weights: LaidOut) -> Plan:
    read, source_carried = _parts([p for layer in weights.source_layers for p in (layer.around_self, layer.around_ffn)])
    source_layers = [SourceLayer(*read[2 * i : 2 * i + 2], it.activation) for i, it in enumerate(weights.source_layers)]
    around = [p for layer in weights.layers for p in (layer.around_self, layer.around_cross, layer.around_ffn)]
    made, carried = _parts(around)
    layers = [Layer(*made[3 * i : 3 * i + 3], layer.activation) for i, layer in enumerate(weights.layers)]
    return Plan(source_layers, source_carried, layers, carried)


def _parts(sublayers: list[Sublayer]) -> tuple[list[Part], Tensor | None]:
    """The sublayers of a stack, and what its stream carries to begin with."""
    post = [True, *(part.placement == "post" for part in sublayers)]  # an embedding takes a bias on as a norm does
    carried = [
        part.last.bias if part.residual and post[i] and post[i + 1] else None for i, part in enumerate(sublayers)
    ]
    return list(map(_part, sublayers, carried, [*carried[1:], None])), carried[0]


def _part(part: Sublayer, carried: Tensor | None, next_carried: Tensor | None) -> Part:
    bias, norm = part.first.bias, part.norm
    assert bias is not None, "the products of a layer have a bias"
    before, after = (norm if part.placement == placement else None for placement in ("pre", "post"))
    if next_carried is not None and after is not None:
        after = after.plus(next_carried)
    if carried is not None:
        bias = bias - carried @ part.first.across
    added = part.last.bias if carried is None else None
    return Part(before, part.first.across, bias, part.last.across, added, part.residual, after)


def places(embedding: Embedding, carried: Tensor | None, capacity: int) -> Float[Tensor, "position d_model"] | None:
    """The terms of the embedding at each position."""
    positions = embedding.positions
    if positions is None:
        return None if carried is None else carried.expand(capacity, -1)
    return positions(capacity) if carried is None else positions(capacity) + carried
