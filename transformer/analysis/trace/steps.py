"""The stations of a forward pass, in the order in which numbers go through them (the paper's figures 1 and 2).

A station is one step of the computation: one equation. Which ones there are follows from the model: a part that a model
never had is no station. Not here: what goes on at a station (walkthrough.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from transformer.interventions import Intervention
from transformer.model.taps import Site, Stack
from transformer.model.transformer import Transformer

Part = Literal["self", "cross", "ffn"]
Name = Literal[
    "ids", "embedding", "positions", "norm", "qkv", "products", "scaled", "penalty", "masked", "weights", "context",
    "concat", "output", "hidden", "add", "layers", "final", "logits", "probabilities",
]  # fmt: skip
Does = TypeVar("Does", bound=Callable[..., Any])
PER_HEAD = frozenset({"qkv", "products", "scaled", "penalty", "masked", "weights", "context"})
"""Stations at which every head computes its own numbers."""


@dataclass(frozen=True)
class Station:
    """One step of the computation, in every layer alike; prints `encoder.self.weights` or `decoder.ids`."""

    stack: Stack
    sublayer: Part | None
    name: Name

    def __str__(self) -> str:
        return ".".join(part for part in (self.stack, self.sublayer, self.name) if part is not None)

    @property
    def in_layer(self) -> bool:
        """Whether each layer has this station."""
        return self.sublayer is not None or self.name == "layers"

    @property
    def per_head(self) -> bool:
        """Whether each head computes its own numbers here."""
        return self.name in PER_HEAD


def by_station(*functions: Does) -> dict[str, Does]:
    """Functions that do something for one station each, by the name that they bear: `_ids` is for `ids`."""
    found = {function.__name__.removeprefix("_"): function for function in functions}
    strange = found.keys() - set(get_args(Name))
    if strange:
        raise ValueError(f"there is no station {min(strange)}")
    return found


def stations(model: Transformer) -> tuple[Station, ...]:
    """Every station of this model from the source's ids to the probabilities, with one layer of each stack."""
    ends = (Station("decoder", None, "logits"), Station("decoder", None, "probabilities"))
    return (*_stack(model, "encoder"), *_stack(model, "decoder"), *ends)


def missing_stations(model: Transformer) -> tuple[Station, ...]:
    """The stations of the paper's figure that this model has not, because it was built without that part."""
    config, own = model.config, stations(model)
    gone: list[Station] = []
    for stack in ("encoder", "decoder"):
        if Station(stack, None, "positions") not in own:
            gone.append(Station(stack, None, "positions"))
        for sublayer in _sublayers(stack):
            if sublayer != "ffn" and not config.scale_scores:
                gone.append(Station(stack, sublayer, "scaled"))
            if Station(stack, sublayer, "add") not in own:
                gone.append(Station(stack, sublayer, "add"))
    return tuple(gone)


def sites_of(station: Station, layer: int, model: Transformer) -> tuple[Site, ...]:
    """The tensors that this station computes or lets in, as a switch may address them."""
    config = model.config
    last_of_scores = (
        "penalty" if _has_penalty(model, station.sublayer) else "scaled" if config.scale_scores else "products"
    )
    first_of_sublayer = "norm" if config.norm == "pre" else "hidden" if station.sublayer == "ffn" else "qkv"
    tensors = {
        "embedding": ("embedding",),
        "positions": ("positions",),
        "norm": ("normed",),
        "qkv": ("q", "k", "v"),
        last_of_scores: ("scores",),
        "masked": ("mask",),
        "weights": ("weights",),
        "context": ("heads",),
        "output": ("output",),
        "add": ("residual", *["normed"] * (config.norm == "post")),
        "logits": ("logits",),
    }.get(station.name, ())
    if station.name == "final":
        return (Site(station.stack, None, "final", "normed"),)
    if station.sublayer is None:
        return tuple(Site(station.stack, None, None, tensor) for tensor in tensors)
    if station.name == first_of_sublayer:
        tensors = ("input", *tensors)
    return tuple(Site(station.stack, layer, station.sublayer, tensor) for tensor in tensors)


def switches_at(
    station: Station, layer: int, switches: Sequence[Intervention], model: Transformer
) -> tuple[Intervention, ...]:
    """The switches that change what this station of this layer hands on."""
    here = set(sites_of(station, layer, model))
    return tuple(spec for spec in switches if here & set(spec.sites(model)))


def n_layers(model: Transformer, stack: Stack) -> int:
    """Layers of a stack."""
    return model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers


def _stack(model: Transformer, stack: Stack) -> list[Station]:
    config = model.config
    names: list[Name] = ["ids", "embedding", *["positions"] * (config.positions in ("sinusoidal", "learned"))]  # type: ignore[list-item]
    found = [Station(stack, None, name) for name in names]
    for sublayer in _sublayers(stack):
        found += _sublayer(model, stack, sublayer)
    if n_layers(model, stack) > 1:
        found.append(Station(stack, None, "layers"))
    return [*found, *[Station(stack, None, "final")] * (config.norm == "pre")]


def _sublayer(model: Transformer, stack: Stack, sublayer: Part) -> list[Station]:
    config = model.config
    inner = (
        ["hidden", "output"]
        if sublayer == "ffn"
        else [
            *["qkv", "products"],
            *["scaled"] * config.scale_scores,
            *["penalty"] * _has_penalty(model, sublayer),
            *["masked", "weights", "context", "concat", "output"],
        ]
    )
    after = config.residual or config.norm == "post"
    names = [*["norm"] * (config.norm == "pre"), *inner, *["add"] * after]
    return [Station(stack, sublayer, name) for name in names]  # type: ignore[arg-type]


def _sublayers(stack: Stack) -> tuple[Part, ...]:
    return ("self", "ffn") if stack == "encoder" else ("self", "cross", "ffn")


def _has_penalty(model: Transformer, sublayer: Part | None) -> bool:
    return model.config.positions == "alibi" and sublayer == "self"
