"""One step of a forward pass: its words, its equation, the numbers that go in and out, and its source.

A step is one equation of the paper's figures 1 and 2. Each is a subclass of `Step` and holds everything there is to
know about it; to add one, write its class and put it into the tuple at the end of its module.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Shaped
from numpy import ndarray
from torch import Tensor, nn

from transformer.analysis.trace.source import Snippet, lines_of
from transformer.analysis.trace.trace import Trace
from transformer.interventions import Intervention
from transformer.model.attention import MultiHeadAttention
from transformer.model.kinds import AttentionKind
from transformer.model.layers import FeedForward
from transformer.model.recurrent import RecurrentModel
from transformer.model.taps import Site, Stack
from transformer.model.transformer import Transformer

T = TypeVar("T")
TracedModel = Transformer | RecurrentModel
"""A model whose steps are known."""
Sublayer = Literal["self", "cross", "ffn", "recurrent"]
Axis = Literal["source", "target", "one", "d_model", "d_head", "d_ff", "vocab", "id"]
"""`one`: a single row for the whole sentence."""
Lines = tuple[Callable[..., Any], str] | tuple[Callable[..., Any], str, str]
"""A function, and a part of the first and of the last of its lines to show; see `lines_of`."""

SUBLAYERS: dict[Stack, tuple[Sublayer, ...]] = {"encoder": ("self", "ffn"), "decoder": ("self", "cross", "ffn")}
"""The sublayers of a Transformer's layer of each stack, in the order of computation."""


class Words(NamedTuple):
    """The words for a step of a model."""

    title: str
    says: str
    """An explanation in Markdown."""
    equation: str
    """LaTeX."""
    paper: str
    """The section of the paper, or another source."""


@dataclass(frozen=True)
class Value:
    """A named array [row column] or [head row column], and what its rows and columns are. Read-only."""

    name: str
    values: Shaped[ndarray, "*head row column"]
    rows: Axis
    columns: Axis
    recorded: bool = True
    """False where it was computed from recorded arrays, because the pass keeps no such array."""
    allowed: Bool[ndarray, "row column"] | None = None
    """False where a mask hides the entry."""
    every_row: bool = False
    """True if all rows take part in one row of the result, as keys and values do."""
    before: Shaped[ndarray, "*head row column"] | None = None
    """The values that the model computed, where an intervention put others in their place."""


@dataclass(frozen=True)
class Computed:
    """The arrays that go in and out of a step, and the pairs of tensors that its equation makes equal."""

    comes_in: tuple[Value, ...]
    comes_out: tuple[Value, ...]
    equal: tuple[tuple[Tensor, Tensor], ...]
    """(reference, recorded): what the equation gives, and what the model computed."""
    how: str
    """The comparison in words."""


ByModel = T | cached_property[T]
"""A constant of a step's class, or what the step reads off its model."""


class StepDescription:
    """The description that the class of a step gives of it."""

    name: ClassVar[str]
    label: ByModel[str]
    """Its name on the map and on links, in the words of the paper's figures."""
    title: ClassVar[str]
    says: ByModel[str]
    equation: ByModel[str]
    paper: ClassVar[str]
    lines: ByModel[tuple[Lines, ...]]
    """The lines of this project that compute it."""
    tensors: ByModel[tuple[str, ...]] = ()
    """The names of the tensors that it computes or lets in, as interventions address them."""
    stacks: ClassVar[tuple[Stack, ...]] = ("encoder", "decoder")
    """The stacks that have it in the paper."""
    exists: ByModel[bool] = True
    """True if this model computes it."""
    in_paper: ClassVar[bool] = True
    """True if the paper's figures show it as a box of its own."""
    per_head: ClassVar[bool] = False
    """True if each head computes its own numbers here."""
    is_product: ByModel[bool] = False
    """True if what comes out of each head is the product of the two matrices that come in."""
    exact: ClassVar[bool] = False
    """True if its numbers are looked up or carried over, hence not rounded."""


@dataclass(frozen=True)
class Step(StepDescription, ABC):
    """One step of a model's computation, the same in every layer; prints `encoder.self.weights` or `decoder.ids`."""

    model: Any
    """A `TracedModel`, of the family that the class of the step is for."""
    stack: Stack
    sublayer: Sublayer | None = None

    def __str__(self) -> str:
        return ".".join(part for part in (self.stack, self.sublayer, self.name) if part is not None)

    @abstractmethod
    def compute(self, at: "StepRecord") -> Computed:
        """Evaluates the equation in float64 on what the pass let into it."""

    def words(self, at: "StepRecord | None" = None) -> Words:
        """Returns the words for the step in this model; `at`: in this pass, where that makes a difference."""
        return Words(self.title, self.says, self.equation, self.paper)

    @property
    def in_layer(self) -> bool:
        """True if each layer has this step of its own."""
        return self.sublayer is not None

    @property
    def n_layers(self) -> int:
        """The number of layers that have it; 1 outside of layers."""
        in_every_layer = self.sublayer in sublayers_in_layers(self.model, self.stack)
        return n_layers(self.model, self.stack) if in_every_layer else 1

    @property
    def kind(self) -> AttentionKind | None:
        """The attention to which it belongs; None outside attention."""
        return AttentionKind.at(self.stack, self.sublayer) if self.sublayer in ("self", "cross") else None

    @property
    def source(self) -> tuple[Snippet, ...]:
        """The lines of this project that compute it, as they are now."""
        return tuple(lines_of(*lines) for lines in self.lines)

    def sites(self, layer: int) -> tuple[Site, ...]:
        """Returns the addresses of all its tensors in a layer."""
        return tuple(Site(self.stack, layer if self.in_layer else None, self.sublayer, name) for name in self.tensors)

    def interventions(self, layer: int, specs: Sequence[Intervention]) -> tuple[Intervention, ...]:
        """Returns the interventions that change what this step of a layer hands on."""
        here = set(self.sites(layer))
        return tuple(spec for spec in specs if here & set(spec.sites(self.model)))


@dataclass(frozen=True)
class StepRecord:
    """A step of a layer in a recorded pass, with the modules that computed it."""

    step: Step
    trace: Trace
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
        """Returns what the model computed in this sublayer, or at this end of the stack."""
        return self.trace.offered[self._site(tensor)]

    def taken(self, tensor: str) -> Tensor:
        """Returns what the pass went on with."""
        return self.trace.taken[self._site(tensor)]

    @property
    def token_vectors(self) -> Tensor:
        """The embedding matrix of this stack."""
        return self.step.model.get_parameter(_TOKEN_VECTORS[self.step.model.config.family, self.step.stack]).detach()

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

    def value(
        self,
        name: str,
        tensor: Tensor,
        columns: Axis = "d_model",
        *,
        rows: Axis | None = None,
        recorded: bool = True,
        allowed: Tensor | None = None,
        every_row: bool = False,
        before: Tensor | None = None,
    ) -> Value:
        """Returns a tensor as a value; its rows are the tokens of this stack unless others are named."""
        return Value(
            name,
            _read_only(tensor),
            rows or self.rows,
            columns,
            recorded,
            None if allowed is None else _read_only(allowed),
            every_row,
            None if before is None else _read_only(before),
        )

    def result(self, name: str, tensor: Tensor, columns: Axis = "d_model", **options: Any) -> Value:
        """Returns a recorded tensor as a value, with what the model had computed if an intervention replaced it."""
        offered = next((self.trace.offered[site] for site, taken in self.trace.taken.items() if taken is tensor), None)
        before = None if offered is None or torch.equal(offered, tensor) else offered
        return self.value(name, tensor, columns, before=before, **options)

    def _site(self, tensor: str) -> Site:
        return Site(self.step.stack, self.layer if self.step.in_layer else None, self.step.sublayer, tensor)

    def _module(self, name: str) -> nn.Module:
        return self.step.model.get_submodule(f"{self.step.stack}.layers.{self.layer}.{name}")


def sublayers_of(model: TracedModel, stack: Stack) -> tuple[Sublayer, ...]:
    """Returns the blocks of a stack in the order of computation; each has steps inside.

    In Bahdanau's order the state before a token asks the source, in Luong's the state after it.
    """
    if isinstance(model, Transformer):
        return SUBLAYERS[stack]
    if stack == "encoder" or model.attention is None:
        return ("recurrent",)
    return ("cross", "recurrent") if model.config.attention == "additive" else ("recurrent", "cross")


def sublayers_in_layers(model: TracedModel, stack: Stack) -> tuple[Sublayer, ...]:
    """Returns the blocks that each layer of a stack has: a recurrent model has its attention only once."""
    return SUBLAYERS[stack] if isinstance(model, Transformer) else ("recurrent",)


def n_layers(model: TracedModel, stack: Stack) -> int:
    """Returns the number of layers of a stack."""
    return model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers


def sublayer_input(at: StepRecord) -> Tensor:
    """Returns what the sublayer itself reads: its input, in pre-norm after the norm."""
    return at.taken("normed") if at.step.model.config.norm == "pre" else at.taken("input")


def sublayer_sum(model: Transformer, trace: Trace, stack: Stack, layer: int, sublayer: Sublayer) -> Tensor:
    """Adds residual and output in the precision of the pass, which keeps no such tensor."""
    output = trace.taken[Site(stack, layer, sublayer, "output")]
    return trace.taken[Site(stack, layer, sublayer, "residual")] + output if model.config.residual else output


def layer_output(model: TracedModel, trace: Trace, stack: Stack, layer: int) -> Tensor:
    """Returns what a layer hands on to the next one."""
    if isinstance(model, RecurrentModel):
        return trace.taken[Site(stack, layer, "recurrent", "output")]
    if model.config.norm == "post":
        return trace.taken[Site(stack, layer, "ffn", "normed")]
    return sublayer_sum(model, trace, stack, layer, "ffn")


def stack_output(model: Transformer, trace: Trace, stack: Stack) -> Tensor:
    """Returns what a stack hands on; the encoder's is the memory of every decoder layer."""
    if model.config.norm == "pre":
        return trace.taken[Site(stack, None, "final", "normed")]
    return layer_output(model, trace, stack, n_layers(model, stack) - 1)


_TOKEN_VECTORS = {
    ("transformer", "encoder"): "encoder.embedding.tokens.weight",
    ("transformer", "decoder"): "decoder.embedding.tokens.weight",
    ("rnn", "encoder"): "source_tokens.weight",
    ("rnn", "decoder"): "target_tokens.weight",
}
"""The names of the embedding matrices, by family and stack."""


def _read_only(tensor: Tensor) -> ndarray:
    array = tensor.detach().numpy()
    array.setflags(write=False)
    return array
