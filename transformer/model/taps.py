"""Reading and changing a forward pass: addresses (Site), observers (Tap), and what an observer keeps (Recording).

A tap is an argument of one forward pass, never a state of the model: a server shares one model among its visitors.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from torch import Tensor

from transformer.model.kinds import Stack, Sublayer

ATTENTION_TENSORS = ("q", "k", "v", "scores", "mask", "weights", "heads")
"""The tensors that an attention block offers besides its input, output and normed, in the order of computation."""


@dataclass(frozen=True)
class Site:
    """The address of one tensor of a forward pass, printed `decoder.2.cross.weights` or `encoder.embedding`."""

    stack: Stack
    layer: int | None
    sublayer: Sublayer | None
    tensor: str

    def __str__(self) -> str:
        return ".".join(str(part) for part in (self.stack, self.layer, self.sublayer, self.tensor) if part is not None)

    @classmethod
    def parse(cls, text: str) -> "Site":
        """The site that prints as `text`; ValueError if there is none of that form."""
        match text.split("."):
            case [("encoder" | "decoder") as stack, tensor]:
                return cls(stack, None, None, tensor)
            case [("encoder" | "decoder") as stack, "final", tensor]:
                return cls(stack, None, "final", tensor)
            case [
                ("encoder" | "decoder") as stack,
                layer,
                ("self" | "cross" | "ffn" | "recurrent" | "conv") as sublayer,
                tensor,
            ] if layer.isascii() and layer.isdecimal() and len(layer) < 6:
                return cls(stack, int(layer), sublayer, tensor)
        raise ValueError(f"{text!r} is not an address; one looks like decoder.0.cross.weights or encoder.embedding")


@runtime_checkable
class Tap(Protocol):
    """Sees every tensor of a pass at its site and returns the tensor that the pass goes on with."""

    def __call__(self, site: Site, tensor: Tensor, /) -> Tensor: ...


def touches_attention(tap: Tap | None) -> bool:
    """True when the pass must take the explicit attention path: for every tap that does not say otherwise.

    A tap that reads or changes nothing inside attention may set `touches_attention = False` to keep the fused path.
    """
    return tap is not None and getattr(tap, "touches_attention", True)


def needs_recomputation(tap: Tap | None) -> bool:
    """True when the tap lets earlier states depend on later tokens, so that cached keys and values would be stale.

    Such a tap says so by `needs_recomputation = True`; decoding then passes the whole prefix at each step.
    """
    return bool(getattr(tap, "needs_recomputation", False))


class Recording(Mapping[Site, Tensor]):
    """The tensors that a Recorder saw, detached, by site; a site may also be given as it prints."""

    def __init__(self) -> None:
        self._tensors: dict[Site, Tensor] = {}

    def __getitem__(self, site: Site | str) -> Tensor:
        return self._tensors[Site.parse(site) if isinstance(site, str) else site]

    def __iter__(self) -> Iterator[Site]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def keep(self, site: Site, tensor: Tensor) -> None:
        """Stores a copy that later in-place work cannot reach."""
        self._tensors[site] = tensor.detach().clone()


def every_site(site: Site) -> bool:
    """True: the recorder keeps everything."""
    return True


@dataclass
class Recorder:
    """A tap that changes nothing and keeps a copy of each wanted tensor in `recording`."""

    wanted: Callable[[Site], bool] = every_site
    recording: Recording = field(default_factory=Recording)

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        if self.wanted(site):
            self.recording.keep(site, tensor)
        return tensor


def chain(*taps: Tap | None) -> Tap | None:
    """One tap that applies the given ones in order, each seeing what the one before returned; None if all are None."""
    present = tuple(tap for tap in taps if tap is not None)
    return _Chain(present) if len(present) > 1 else (present[0] if present else None)


@dataclass(frozen=True)
class _Chain:
    taps: tuple[Tap, ...]

    @property
    def touches_attention(self) -> bool:
        return any(touches_attention(tap) for tap in self.taps)

    @property
    def needs_recomputation(self) -> bool:
        return any(needs_recomputation(tap) for tap in self.taps)

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        for tap in self.taps:
            tensor = tap(site, tensor)
        return tensor


@dataclass(frozen=True)
class Address:
    """The place of a block, given to it when it is built; turns a tensor's name into its site."""

    stack: Stack
    layer: int | None = None
    sublayer: Sublayer | None = None

    def site(self, tensor: str) -> Site:
        return Site(self.stack, self.layer, self.sublayer, tensor)

    def offer(self, tap: Tap | None, name: str, tensor: Tensor) -> Tensor:
        """The tensor that the pass goes on with: the tap's answer, or the tensor itself without a tap."""
        return tensor if tap is None else tap(self.site(name), tensor)
