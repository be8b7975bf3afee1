"""What the equations of stations are written with: a station in a recorded pass, its values, the maps in float64.

Not here: the equations (sums.py, attention_sums.py).
"""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.analysis.trace.steps import Part, Station, n_layers
from transformer.analysis.trace.trace import Trace
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import AddNorm, FeedForward
from transformer.model.taps import Site
from transformer.model.transformer import Embedding, Transformer

Axis = Literal["source", "target", "d_model", "d_head", "d_ff", "vocab", "id"]


@dataclass(frozen=True)
class Value:
    """A named tensor [row column] or [head row column] and what its rows and columns are."""

    name: str
    tensor: Tensor
    rows: Axis
    columns: Axis
    recorded: bool = True
    """False where it was computed from recorded tensors, because the pass keeps no such tensor."""
    allowed: Tensor | None = None
    """[row column]: False where a mask forbids the cell."""
    every_row: bool = False
    """Whether all rows take part in one row of the result, as keys and values do."""


@dataclass(frozen=True)
class Sum:
    """What goes in and out of a station, and the pairs of tensors that its equation makes equal."""

    comes_in: tuple[Value, ...]
    comes_out: tuple[Value, ...]
    equal: tuple[tuple[Tensor, Tensor], ...]
    """(computed here, recorded): what the equation gives, and what the model offered."""
    how: str
    """What is compared with what."""


@dataclass(frozen=True)
class At:
    """A station of a layer in a recorded pass, with the modules that computed it."""

    model: Transformer
    walk: Trace
    station: Station
    layer: int

    @property
    def rows(self) -> Axis:
        return "source" if self.station.stack == "encoder" else "target"

    @property
    def keys(self) -> Axis:
        """What stands at the keys of this attention block."""
        return "source" if self.station.sublayer == "cross" else self.rows

    @property
    def part(self) -> Part:
        assert self.station.sublayer is not None, "only a block's stations ask for it"
        return self.station.sublayer

    def offered(self, tensor: str) -> Tensor:
        """What the model computed in this block."""
        return self.walk.offered[Site(self.station.stack, self.layer, self.part, tensor)]

    def taken(self, tensor: str) -> Tensor:
        """What the pass went on with."""
        return self.walk.taken[Site(self.station.stack, self.layer, self.part, tensor)]

    @property
    def embedding(self) -> Embedding:
        return self.model.get_submodule(f"{self.station.stack}.embedding")  # type: ignore[return-value]

    @property
    def attention(self) -> MultiHeadAttention:
        return self._module(f"{self.part}_attention")  # type: ignore[return-value]

    @property
    def feed_forward(self) -> FeedForward:
        return self._module("feed_forward")  # type: ignore[return-value]

    @property
    def add_norm(self) -> AddNorm:
        return self._module(f"add_norm_{self.part}")  # type: ignore[return-value]

    def _module(self, name: str) -> nn.Module:
        return self.model.get_submodule(f"{self.station.stack}.layers.{self.layer}.{name}")

    def hidden(self, name: str, tensor: Tensor, *, recorded: bool = True) -> Value:
        """States of this stack's tokens."""
        return Value(name, tensor, self.rows, "d_model", recorded)


def entering_sublayer(at: At) -> Tensor:
    """What the block itself reads: its input, in pre-norm after the norm."""
    return at.taken("normed") if at.model.config.norm == "pre" else at.taken("input")


def memory_of(at: At) -> Tensor:
    """What the encoder hands to every decoder layer."""
    return stack_output(At(at.model, at.walk, Station("encoder", None, "layers"), 0))


def stack_output(at: At) -> Tensor:
    """What the station's stack hands on after its last layer."""
    if at.model.config.norm == "pre":
        return at.walk.taken[Site(at.station.stack, None, "final", "normed")]
    return stack_sum(at)


def sublayer_output(at: At) -> Tensor:
    """What a block hands on to the next one."""
    return at.taken("normed") if at.model.config.norm == "post" else sublayer_sum(at)


def stack_sum(at: At) -> Tensor:
    """What the last layer of the station's stack gave."""
    last = n_layers(at.model, at.station.stack) - 1
    return sublayer_output(At(at.model, at.walk, Station(at.station.stack, "ffn", "add"), last))


def sublayer_sum(at: At) -> Tensor:
    """Residual and output added, in the precision of the pass: it keeps no such tensor."""
    return at.taken("residual") + at.taken("output") if at.model.config.residual else at.taken("output")


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """What a linear map makes of x, in float64."""
    bias = None if layer.bias is None else layer.bias.detach().double()
    return F.linear(x.double(), layer.weight.detach().double(), bias)


def normed(norm: nn.Module | None, x: Tensor) -> Tensor:
    """The layer norm of x, in float64."""
    assert isinstance(norm, nn.LayerNorm)
    gain, bias = norm.weight.detach().double(), norm.bias.detach().double()
    return F.layer_norm(x.double(), norm.normalized_shape, gain, bias, norm.eps)


def split(x: Tensor, n_heads: int) -> Tensor:
    """[row d_model] -> [head row d_head]."""
    return x.unflatten(-1, (n_heads, -1)).transpose(0, 1)


def joined(heads: Tensor) -> Tensor:
    """[head row d_head] -> [row d_model]."""
    return heads.transpose(0, 1).flatten(1)
