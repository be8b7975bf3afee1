"""The three kinds of attention of an encoder-decoder model. Nothing here needs torch, so that figures may name them."""

from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

Stack = Literal["encoder", "decoder"]
Sublayer = Literal["self", "cross", "ffn", "recurrent", "conv", "final"]


@runtime_checkable
class HasLayers(Protocol):
    """Settings that say how many layers each stack has."""

    @property
    def n_encoder_layers(self) -> int: ...

    @property
    def n_decoder_layers(self) -> int: ...


class AttentionKind(StrEnum):
    """A kind of attention. Equals its name as links and data files hold it, and prints as that name."""

    ENCODER_SELF = "encoder_self"
    DECODER_SELF = "decoder_self"
    CROSS = "cross"

    @classmethod
    def at(cls, stack: str, sublayer: str) -> "AttentionKind":
        """The kind of attention of this sublayer; ValueError where there is none."""
        for kind in cls:
            if kind.where == (stack, sublayer):
                return kind
        raise ValueError(f"the {stack} has no {sublayer}-attention")

    @property
    def stack(self) -> Stack:
        """The stack in whose layers it stands."""
        return "encoder" if self is AttentionKind.ENCODER_SELF else "decoder"

    @property
    def sublayer(self) -> Literal["self", "cross"]:
        """The sublayer of those layers."""
        return "cross" if self is AttentionKind.CROSS else "self"

    @property
    def where(self) -> tuple[Stack, Literal["self", "cross"]]:
        """Stack and sublayer."""
        return self.stack, self.sublayer

    @property
    def short(self) -> str:
        """Its name where there is little room: "Encoder self"."""
        return "Cross" if self is AttentionKind.CROSS else f"{self.stack.capitalize()} self"

    @property
    def label(self) -> str:
        """Its name: "Encoder self-attention"."""
        return f"{self.short}-attention"

    @property
    def phrase(self) -> str:
        """Its name within a sentence: "encoder self-attention"."""
        return self.label.lower()

    def n_layers(self, config: HasLayers) -> int:
        """Returns the number of layers that have it."""
        return config.n_encoder_layers if self.stack == "encoder" else config.n_decoder_layers

    def __repr__(self) -> str:
        return repr(self.value)  # the printed options of a figure are Python that takes the name


KindName = AttentionKind | Literal["encoder_self", "decoder_self", "cross"]
"""A kind of attention or its name, as figures and notebooks may give it; `AttentionKind(name)` is the kind."""
