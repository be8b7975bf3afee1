"""A model's weights as products with few rows read them fastest, kept while the model is at rest.

Several products of one input are one, and matrices are transposed. Here stand the numbers of the model and no others:
what the two decoders of cached_steps.py and plain_steps.py make of them is theirs.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention, side_by_side
from transformer.model.layers import AddNorm, DecoderLayer, EncoderLayer
from transformer.model.transformer import Transformer

States = Float[Tensor, "row d_model"]


@dataclass(frozen=True)
class Product:
    """x W^T + b."""

    across: Float[Tensor, "inner outer"]
    """The matrix transposed; in a decoder on a CPU in that order in memory too, which makes a product with few rows up
    to twice as fast."""
    bias: Float[Tensor, " outer"] | None

    @classmethod
    def of(cls, weight: Float[Tensor, "outer inner"], bias: Float[Tensor, " outer"] | None) -> "Product":
        return cls(weight.t(), bias)

    def in_order(self) -> "Product":
        """The same for few rows."""
        return Product(self.across.contiguous(), self.bias) if self.across.device.type == "cpu" else self

    def __call__(self, x: Float[Tensor, "row inner"]) -> Float[Tensor, "row outer"]:
        return torch.mm(x, self.across) if self.bias is None else torch.addmm(self.bias, x, self.across)


class Norm:
    """A layer norm in one call."""

    def __init__(self, shape: Sequence[int], weight: Tensor, bias: Tensor, epsilon: float) -> None:
        self.shape, self.weight, self.bias, self.epsilon = shape, weight, bias, epsilon

    @classmethod
    def of(cls, norm: nn.Module) -> "Norm":
        assert isinstance(norm, nn.LayerNorm)
        return cls(norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def plus(self, constant: Float[Tensor, " d_model"]) -> "Norm":
        """The norm that adds a constant to what it gives."""
        return Norm(self.shape, self.weight, self.bias + constant, self.epsilon)

    def __call__(self, x: States) -> States:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.epsilon)


class Sublayer:
    """The first and the last product of a sublayer, and what stands around it."""

    def __init__(self, part: AddNorm, first: Product, last: Product) -> None:
        self.address, self.residual, self.placement = part.address, part.residual, part.placement
        self.first, self.last = first, last
        self.norm = None if part.norm is None else Norm.of(part.norm)


class SourceLayer:
    """An encoder layer, whose products have many rows; the first of self-attention gives queries, keys and values."""

    def __init__(self, layer: EncoderLayer) -> None:
        own, ffn = layer.self_attention, layer.feed_forward
        self.self_attention, self.activation = own, ffn.activation
        self.around_self = Sublayer(layer.add_norm_self, _queries_keys_values(own), _product(own.output))
        self.around_ffn = Sublayer(layer.add_norm_ffn, _product(ffn.inner), _product(ffn.outer))


class Layer:
    """A decoder layer; the first product of self-attention gives queries, keys and values side by side."""

    def __init__(self, layer: DecoderLayer) -> None:
        own, cross, ffn = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.self_attention, self.cross_attention, self.activation = own, cross, ffn.activation
        self.around_self = _in_order(layer.add_norm_self, _queries_keys_values(own), own.output)
        self.around_cross = _in_order(layer.add_norm_cross, _product(cross.query), cross.output)
        self.around_ffn = _in_order(layer.add_norm_ffn, _product(ffn.inner), ffn.outer)


class LaidOut:
    """A model from its embeddings to the projection."""

    def __init__(self, model: Transformer) -> None:
        encoder, decoder = model.encoder, model.decoder
        own, other = decoder.embedding, encoder.embedding
        self.vectors = own.tokens.weight * own.scale
        shared = own.tokens is other.tokens and own.scale == other.scale
        self.source_vectors = self.vectors if shared else other.tokens.weight * other.scale
        self.source_layers = [SourceLayer(layer) for layer in encoder.layers if isinstance(layer, EncoderLayer)]
        self.source_norm = None if encoder.norm is None else Norm.of(encoder.norm)
        self.layers = [Layer(layer) for layer in decoder.layers if isinstance(layer, DecoderLayer)]
        self.kv = _keys_and_values([layer.cross_attention for layer in self.layers])
        """Keys and values of the sources for all layers side by side."""
        self.norm = None if decoder.norm is None else Norm.of(decoder.norm)
        self.project = _product(model.projection).in_order()


def _in_order(part: AddNorm, first: Product, last: nn.Linear) -> Sublayer:
    return Sublayer(part, first.in_order(), _product(last).in_order())


def _product(linear: nn.Linear) -> Product:
    return Product.of(linear.weight, linear.bias)


def _queries_keys_values(attention: MultiHeadAttention) -> Product:
    return Product.of(*side_by_side(attention.query, attention.key, attention.value))


def _keys_and_values(attentions: list[MultiHeadAttention]) -> Product:
    return Product.of(*side_by_side(*(part for attention in attentions for part in (attention.key, attention.value))))


def keys_and_values(
    weights: LaidOut, memory: Float[Tensor, "source length d_model"]
) -> Float[Tensor, "layer 2 source head length d_head"]:
    """Keys, then values, of the sources for the cross-attention of every layer."""
    heads = weights.layers[0].cross_attention.n_heads
    found = weights.kv(memory.flatten(0, 1)).view(*memory.shape[:2], len(weights.layers), 2, heads, -1)
    return found.permute(2, 3, 0, 4, 1, 5).contiguous()  # [source length layer 2 head d_head] -> layer first


class _Origin:
    """Everything that weights were laid out from, to tell any edit of it, in place or not.

    Versions of tensors miss edits through `.data`, numpy and fused training steps, so contents are compared byte by
    byte, which costs less than one step of the decoder.
    """

    def __init__(self, model: Transformer, parameters: list[nn.Parameter]) -> None:
        held = [
            entry
            for module in model.modules()
            for entry in (*_settings(module), *_entries(module._parameters), *_entries(module._modules))
        ]
        self._places, self._names, self._values = map(list, zip(*held, strict=True))
        self._parameters, self._where = parameters, _where(parameters)
        self._memory = [p.detach().view(-1).view(torch.uint8).numpy().data for p in parameters]
        self._bytes = list(map(bytearray, self._memory))

    def is_unchanged(self) -> bool:
        """True where the model holds the same modules, settings, parameters and numbers as it did."""
        now = map(dict.get, self._places, self._names, repeat(_MISSING))
        return (
            all(map(operator.is_, now, self._values))
            and _where(self._parameters) == self._where  # else the views read memory that is no longer used
            and self._bytes == self._memory  # one memcmp a parameter
        )


_Entry = tuple[dict[str, Any], str, object]
_MISSING = object()


def _settings(module: nn.Module) -> list[_Entry]:
    """The attributes that a module was given, such as a norm's `eps`; `training` changes nothing here."""
    return [entry for entry in _entries(vars(module)) if not entry[1].startswith("_") and entry[1] != "training"]


def _entries(held: dict[str, Any]) -> list[_Entry]:
    return [(held, name, value) for name, value in held.items()]


def _where(parameters: list[nn.Parameter]) -> list[tuple[int, tuple[int, ...]]]:
    return [(parameter.data_ptr(), parameter.stride()) for parameter in parameters]


_KEPT: WeakKeyDictionary[Transformer, tuple[_Origin, LaidOut]] = WeakKeyDictionary()


def laid_out(model: Transformer) -> LaidOut:
    """The model's weights laid out: on a CPU once for a model at rest, and again after any edit of it. Always anew for
    one in training, which changes all the time, and on other devices, where weights are not transposed."""
    if model in _KEPT and _KEPT[model][0].is_unchanged():
        return _KEPT[model][1]
    _KEPT.pop(model, None)
    parameters = list(model.parameters())
    weights = LaidOut(model)
    if all(p.device.type == "cpu" and p.is_contiguous() and not p.requires_grad for p in parameters):
        _KEPT[model] = _Origin(model, parameters), weights
    return weights
