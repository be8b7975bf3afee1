"""The interface that decoding, inspection, interventions and training need of a model, whatever it is made of.

The Transformer is one such model. Recurrent and convolutional models with attention are others: their only kind of
attention is `cross`, and they add no positions. A model says by its sites what it has; nothing here assumes a kind of
attention.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.model.kinds import AttentionKind
from transformer.model.taps import Site, Tap


@runtime_checkable
class Seq2SeqConfig(Protocol):
    """Settings that every model has, whatever else its own configuration holds."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def max_length(self) -> int: ...

    @property
    def n_heads(self) -> int: ...

    @property
    def pad_id(self) -> int: ...

    @property
    def bos_id(self) -> int: ...

    @property
    def eos_id(self) -> int: ...


@runtime_checkable
class Seq2Seq(Protocol):
    """A model that reads a source and gives the logits of the next target token; an `nn.Module`."""

    @property
    def config(self) -> Seq2SeqConfig: ...

    @property
    def projection(self) -> nn.Linear:
        """The map from decoder states to logits."""
        ...

    @property
    def training(self) -> bool: ...

    def __call__(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"] | None = None,
        target_mask: Bool[Tensor, "batch target"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target vocab"]:
        """Returns the logits of the token after each target position; `target` begins with bos."""
        ...

    def encode(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch read wide"]:
        """Returns all that the decoder may read of a source: decoding repeats, drops and reorders its rows."""
        ...

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch read wide"],
        source_mask: Bool[Tensor, "batch source"],
        target_mask: Bool[Tensor, "batch target"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """Returns the decoder's state at each target position."""
        ...

    def project(
        self, states: Float[Tensor, "*positions d_model"], *, tap: Tap | None = None
    ) -> Float[Tensor, "*positions vocab"]:
        """Returns the logits over the vocabulary."""
        ...

    def needs_recomputation(self, tap: Tap | None = None) -> bool:
        """Tells whether earlier target states depend on later tokens, by the model's nature or under the tap."""
        ...

    def sites(self) -> tuple[Site, ...]:
        """Returns every address of a pass; attention offers `weights` and `mask` at least."""
        ...

    def n_parameters(self) -> int: ...

    def modules(self) -> Iterator[nn.Module]: ...

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]: ...

    def train(self, mode: bool = True) -> Any: ...

    def eval(self) -> Any: ...


@runtime_checkable
class Carried(Protocol):
    """What a decoder carries from one target token to the next, and the source that it asks."""

    def advance(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> Float[Tensor, "row d_model"]:
        """Returns the decoder's state at the next position, at which these tokens stand."""
        ...

    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        ...


@runtime_checkable
class CarriesState(Seq2Seq, Protocol):
    """A model whose decoder needs of the past a state of its own, not the keys and values of every position."""

    def begin(self, memory: Float[Tensor, "batch read wide"], source_mask: Bool[Tensor, "batch source"]) -> Carried:
        """Returns the decoder before its first token."""
        ...


def check_length(config: Seq2SeqConfig, length: int, name: str) -> None:
    """ValueError for a source or target with more tokens than a model takes."""
    if length > config.max_length:
        raise ValueError(f"{name} has {length} tokens; this model takes at most {config.max_length} (max_length)")


def attention_layers(model: Seq2Seq) -> dict[AttentionKind, int]:
    """Returns the kinds of attention that a model has, each with its number of layers."""
    weights = (site for site in model.sites() if site.tensor == "weights")
    return dict(Counter(AttentionKind.at(site.stack, site.sublayer or "") for site in weights))
