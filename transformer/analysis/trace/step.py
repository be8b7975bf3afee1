"""One step of a forward pass: what is said of it, the numbers that go in and out, its equation and its source.

A step is one equation of the paper's figures 1 and 2. Each is a subclass of `Step` and holds all that there is to know
about it; to add one, write its class and put it into the tuple at the end of its module.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from transformer.analysis.trace.source import Snippet
from transformer.analysis.trace.trace import Trace
from transformer.interventions import Intervention
from transformer.model.attention import MultiHeadAttention
from transformer.model.kinds import AttentionKind
from transformer.model.layers import FeedForward
from transformer.model.taps import Site, Stack
from transformer.model.transformer import Embedding, Transformer

Sublayer = Literal["self", "cross", "ffn"]
Axis = Literal["source", "target", "d_model", "d_head", "d_ff", "vocab", "id"]

SUBLAYERS: dict[Stack, tuple[Sublayer, ...]] = {"encoder": ("self", "ffn"), "decoder": ("self", "cross", "ffn")}
"""The sublayers of a layer of each stack, in the order of computation."""


@dataclass(frozen=True)
class StepText:
    """What is said of a step of one model."""

    title: str
    says: str
    equation: str
    """LaTeX."""
    paper: str
    """The section of the paper, or another source."""


@dataclass(frozen=True)
class Value:
    """A named tensor [row column] or [head row column], and what its rows and columns are."""

    name: str
    tensor: Tensor
    rows: Axis
    columns: Axis
    recorded: bool = True
    """False where it was computed from recorded tensors, because the pass keeps no such tensor."""
    allowed: Tensor | None = None
    """[row column]: False where a mask hides the entry."""
    every_row: bool = False
    """Whether all rows take part in one row of the result, as keys and values do."""


@dataclass(frozen=True)
class Computed:
    """What goes in and out of a step, and the pairs of tensors that its equation makes equal."""

    comes_in: tuple[Value, ...]
    comes_out: tuple[Value, ...]
    equal: tuple[tuple[Tensor, Tensor], ...]
    """(reference, recorded): what the equation gives, and what the model computed."""
    how: str
    """What is compared with what."""


@dataclass(frozen=True)
class Step(ABC):
    """One step of the computation, the same in every layer; prints `encoder.self.weights` or `decoder.ids`."""

    stack: Stack
    sublayer: Sublayer | None

    name: ClassVar[str]
    per_head: ClassVar[bool] = False
    """Whether each head computes its own numbers here."""
    exact: ClassVar[bool] = False
    """Whether its numbers are looked up or carried over, hence not rounded."""

    def __str__(self) -> str:
        return ".".join(part for part in (self.stack, self.sublayer, self.name) if part is not None)

    @property
    def in_layer(self) -> bool:
        """Whether each layer has this step of its own."""
        return self.sublayer is not None

    @property
    def kind(self) -> AttentionKind | None:
        """The attention to which it belongs; None outside attention."""
        if self.sublayer in (None, "ffn"):
            return None
        return AttentionKind.at(self.stack, self.sublayer)

    def exists(self, model: Transformer) -> bool:
        """Whether this model computes it."""
        return True

    @property
    def in_paper(self) -> bool:
        """Whether the paper's figures show it as a box of its own."""
        return True

    @abstractmethod
    def label(self, model: Transformer) -> str:
        """Its name on the map and on links, in the words of the paper's figures."""

    @abstractmethod
    def text(self, model: Transformer, at: "StepRecord | None" = None) -> StepText:
        """The words for it in this model; `at`: the pass of which they are said, where that makes a difference."""

    @abstractmethod
    def compute(self, at: "StepRecord") -> Computed:
        """Its equation, evaluated in float64 on what the pass let into it."""

    def tensors(self, model: Transformer) -> tuple[str, ...]:
        """The names of the tensors that it computes or lets in, as interventions address them."""
        return ()

    @abstractmethod
    def source(self, model: Transformer) -> tuple[Snippet, ...]:
        """The lines of this project that compute it."""

    def site(self, tensor: str, layer: int) -> Site:
        """The address of one of its tensors."""
        return Site(self.stack, layer if self.in_layer else None, self.sublayer, tensor)

    def sites(self, model: Transformer, layer: int) -> tuple[Site, ...]:
        """The addresses of all its tensors."""
        return tuple(self.site(tensor, layer) for tensor in self.tensors(model))

    def interventions(self, model: Transformer, layer: int, specs: Sequence[Intervention]) -> tuple[Intervention, ...]:
        """The interventions that change what this step of this layer hands on."""
        here = set(self.sites(model, layer))
        return tuple(spec for spec in specs if here & set(spec.sites(model)))


@dataclass(frozen=True)
class StepRecord:
    """A step of a layer in a recorded pass, with the modules that computed it."""

    model: Transformer
    trace: Trace
    step: Step
    layer: int

    @property
    def rows(self) -> Axis:
        """The tokens of this stack."""
        return "source" if self.step.stack == "encoder" else "target"

    @property
    def keys(self) -> Axis:
        """The tokens at the keys of this attention."""
        return "source" if self.step.sublayer == "cross" else self.rows

    @property
    def sublayer(self) -> Sublayer:
        """The sublayer of a step inside a layer."""
        assert self.step.sublayer is not None, "only steps inside a layer ask for it"
        return self.step.sublayer

    def offered(self, tensor: str) -> Tensor:
        """What the model computed in this sublayer, or at this end of the stack."""
        return self.trace.offered[Site(self.step.stack, self._layer, self.step.sublayer, tensor)]

    def taken(self, tensor: str) -> Tensor:
        """What the pass went on with."""
        return self.trace.taken[Site(self.step.stack, self._layer, self.step.sublayer, tensor)]

    @property
    def _layer(self) -> int | None:
        return self.layer if self.step.in_layer else None

    @property
    def embedding(self) -> Embedding:
        """The embedding of this stack."""
        return self.model.get_submodule(f"{self.step.stack}.embedding")  # type: ignore[return-value]

    @property
    def attention(self) -> MultiHeadAttention:
        """The attention of this sublayer."""
        return self._module(f"{self.sublayer}_attention")  # type: ignore[return-value]

    @property
    def feed_forward(self) -> FeedForward:
        """The feed-forward network of this layer."""
        return self._module("feed_forward")  # type: ignore[return-value]

    @property
    def norm(self) -> nn.Module | None:
        """The layer norm of this sublayer."""
        return self._module(f"add_norm_{self.sublayer}").norm  # type: ignore[return-value,union-attr]

    def _module(self, name: str) -> nn.Module:
        return self.model.get_submodule(f"{self.step.stack}.layers.{self.layer}.{name}")

    def hidden(self, name: str, tensor: Tensor, *, recorded: bool = True) -> Value:
        """States of this stack's tokens."""
        return Value(name, tensor, self.rows, "d_model", recorded)


def n_layers(model: Transformer, stack: Stack) -> int:
    """The number of layers of a stack."""
    return model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers


def sublayer_input(at: StepRecord) -> Tensor:
    """What the sublayer itself reads: its input, in pre-norm after the norm."""
    return at.taken("normed") if at.model.config.norm == "pre" else at.taken("input")


def sublayer_sum(model: Transformer, trace: Trace, stack: Stack, layer: int, sublayer: Sublayer) -> Tensor:
    """Residual and output added, in the precision of the pass, which keeps no such tensor."""
    output = trace.taken[Site(stack, layer, sublayer, "output")]
    return trace.taken[Site(stack, layer, sublayer, "residual")] + output if model.config.residual else output


def layer_output(model: Transformer, trace: Trace, stack: Stack, layer: int) -> Tensor:
    """What a layer hands on to the next one."""
    if model.config.norm == "post":
        return trace.taken[Site(stack, layer, "ffn", "normed")]
    return sublayer_sum(model, trace, stack, layer, "ffn")


def stack_output(model: Transformer, trace: Trace, stack: Stack) -> Tensor:
    """What a stack hands on; the encoder's is the memory of every decoder layer."""
    if model.config.norm == "pre":
        return trace.taken[Site(stack, None, "final", "normed")]
    return layer_output(model, trace, stack, n_layers(model, stack) - 1)
