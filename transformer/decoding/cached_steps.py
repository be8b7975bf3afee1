"""The decoder one token at a time, with a cache of keys and values: the sums of `Transformer.decode` in fewer calls and
in memory set aside once, which at small sizes is most of the work. Tests hold the two equal, site by site.
"""

import operator
from collections.abc import Callable
from contextlib import nullcontext
from itertools import repeat
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention, explicit_attention, fused_attention, side_by_side
from transformer.model.layers import AddNorm, DecoderLayer
from transformer.model.masks import AttentionMask, key_mask
from transformer.model.positions import AlibiPositions, RotaryPositions
from transformer.model.taps import Address, Tap
from transformer.model.transformer import Transformer

States = Float[Tensor, "row d_model"]
Map = Callable[[Tensor], Tensor]


class StepDecoder:
    """The logits after one target token after another, for sources that are encoded already.

    Each token passes the decoder alone; the keys and values of those before it are kept. Rows may be reordered, dropped
    and repeated between two tokens. For a model in evaluation with a causal mask, whose weights stay as they are
    meanwhile.
    """

    def __init__(
        self,
        model: Transformer,
        memory: Float[Tensor, "source length d_model"],
        source_mask: Bool[Tensor, "source length"],
        *,
        capacity: int,
        per_source: int = 1,
    ) -> None:
        """`per_source` rows side by side belong to each source and read the same keys and values of it.

        ValueError for more than the model's `max_length` tokens, and for a model without a causal mask, whose earlier
        states depend on later tokens.
        """
        if not model.config.causal_mask:
            raise ValueError("a model without a causal mask cannot reuse keys and values: decode with cache=False")
        if capacity > (longest := model.config.max_length):
            raise ValueError(f"this model takes at most {longest} tokens (max_length), not {capacity}")
        positions = model.decoder.embedding.positions
        self._places = None if positions is None else positions(capacity)
        self._weights, self._per_source = _weights_of(model), per_source
        rows = per_source * len(memory)
        self._targets = [_Target(layer.self_attention, rows, capacity) for layer in self._weights.layers]
        self._sources = [_Source(layer.cross_attention, memory) for layer in self._weights.layers]
        self._source_mask = source_mask
        self._mask = AttentionMask.of(key_mask(source_mask), memory.dtype)
        self._every_key = AttentionMask(source_mask.new_ones(1, 1, 1, 1), None, None)
        self.length = 0
        """Target positions held."""

    @torch.no_grad()
    def logits(self, tokens: Int[Tensor, "row"], tap: Tap | None = None) -> Float[Tensor, "row vocab"]:
        """Logits of the token after these, which follow those given before.

        The tap is offered every tensor of the decoder, with 1 as the number of queries; it needs a `per_source` of 1.
        """
        with torch.inference_mode() if tap is None else nullcontext():  # what leaves may be used with gradients
            state = self._state(tokens, tap)
        return _OUTSIDE.offer(tap, "logits", self._weights.project(state))

    def _state(self, tokens: Int[Tensor, "row"], tap: Tap | None) -> States:
        x = _offer(_OUTSIDE, tap, "embedding", self._weights.vectors.index_select(0, tokens))
        if self._places is not None:
            place = self._places[self.length]
            x = x + (place if tap is None else _offer(_OUTSIDE, tap, "positions", place.expand_as(x)))
        for layer, target, source in zip(self._weights.layers, self._targets, self._sources, strict=True):
            x = layer.around_self(x, lambda x, t=target: t.context(x, self.length, self._every_key, tap), tap)
            x = layer.around_cross(x, lambda x, s=source: s.context(x, self._mask, tap), tap)
            x = layer.around_ffn(x, layer.hidden, tap)
        self.length += 1
        return self._weights.final(x, tap)

    @torch.no_grad()
    def rows(self, kept: Int[Tensor, "row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        for target in self._targets:
            target.rows(kept, self.length)
        if not same_sources:
            sources = kept[:: self._per_source] // self._per_source
            for source in self._sources:
                source.rows(sources)
            self._source_mask = self._source_mask[sources]
            self._mask = AttentionMask.of(key_mask(self._source_mask), self._weights.vectors.dtype)


class _Target:
    """Keys and values of the target positions so far, in memory set aside once."""

    def __init__(self, weights: "_SelfAttention", rows: int, capacity: int) -> None:
        self._weights = weights
        self._held = weights.new_room(rows, capacity)
        self._spare = torch.empty_like(self._held)

    def context(self, x: States, start: int, mask: AttentionMask, tap: Tap | None) -> States:
        """Returns what each row gathered from its target positions, the newest at `start`."""
        weights, held, bias = self._weights, self._held, None
        found = weights.qkv(x).view(len(x), 3, weights.n_heads, -1)
        q = found.select(1, 0).unsqueeze(2)
        held.select(1, start).copy_(found.narrow(1, 1, 2))
        if isinstance(weights.relative, RotaryPositions):
            q = weights.relative(q, start)
            held[:, start, 0] = weights.relative(found[:, 1, :, None], start)[:, :, 0]
        elif isinstance(weights.relative, AlibiPositions):
            bias = weights.relative(1, start + 1)
        k, v = held.narrow(1, 0, start + 1).permute(2, 0, 3, 1, 4).unbind()  # -> [row head position d_head] each
        return weights.attend(q, k, v, mask, bias, tap).flatten(1)

    def rows(self, kept: Tensor, length: int) -> None:
        """The first `length` positions of these rows, copied into the other half of the memory."""
        target = self._spare[: len(kept)]
        torch.index_select(self._held[:, :length], 0, kept, out=target[:, :length])
        self._held, self._spare = target, self._held


class _Source:
    """Keys and values of the sources."""

    def __init__(self, weights: "_CrossAttention", memory: Tensor) -> None:
        self._weights = weights
        found = weights.kv(memory.flatten(0, 1)).view(*memory.shape[:2], 2, weights.n_heads, -1)
        self._k, self._v = found.permute(2, 0, 3, 1, 4).contiguous().unbind()  # -> [source head position d_head] each

    def context(self, x: States, mask: AttentionMask, tap: Tap | None) -> States:
        """Returns what each row gathered from its source: rows of one source ask together."""
        weights, n_sources = self._weights, len(self._k)
        q = weights.query(x).view(n_sources, -1, weights.n_heads, self._k.size(-1)).transpose(1, 2)
        return weights.attend(q, self._k, self._v, mask, None, tap).transpose(1, 2).reshape(x.shape)

    def rows(self, kept: Tensor) -> None:
        self._k, self._v = self._k[kept], self._v[kept]


class _Weights:
    """A decoder's matrices, laid out for products with few rows."""

    def __init__(self, model: Transformer) -> None:
        embedding = model.decoder.embedding
        self.vectors = embedding.tokens.weight * embedding.scale
        self.layers = [_Layer(layer) for layer in model.decoder.layers if isinstance(layer, DecoderLayer)]
        self._norm = model.decoder.norm
        self._normed = _normed_by(self._norm)
        self.project = _product(model.projection.weight, model.projection.bias)

    def final(self, x: States, tap: Tap | None) -> States:
        """Returns the state that the projection reads."""
        return x if self._norm is None else _offer(_FINAL, tap, "normed", self._normed(x))


class _Layer:
    def __init__(self, layer: DecoderLayer) -> None:
        self.self_attention = _SelfAttention(layer.self_attention)
        self.cross_attention = _CrossAttention(layer.cross_attention)
        self._inner, self._activation = _linear(layer.feed_forward.inner), layer.feed_forward.activation
        self.around_self = _Around(layer.add_norm_self, layer.self_attention.output)
        self.around_cross = _Around(layer.add_norm_cross, layer.cross_attention.output)
        self.around_ffn = _Around(layer.add_norm_ffn, layer.feed_forward.outer)

    def hidden(self, x: States) -> Float[Tensor, "row d_ff"]:
        """The feed-forward's inner states."""
        return self._activation(self._inner(x))


class _Attention:
    def __init__(self, attention: MultiHeadAttention) -> None:
        self.n_heads, self._score, self._address = attention.n_heads, attention.score, attention.address

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, bias: Tensor | None, tap: Tap | None
    ) -> Tensor:
        """The heads' contexts [row head query d_head]: in one call, or open to the tap."""
        if tap is None and self._score.is_dot_product:
            return fused_attention(q, k, v, mask, bias=bias, scale=self._score.fused_scale)
        return explicit_attention(q, k, v, mask.allowed, bias=bias, score=self._score, address=self._address, tap=tap)


class _SelfAttention(_Attention):
    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__(attention)
        self.relative = attention.relative
        self.qkv = _product(*side_by_side(attention.query, attention.key, attention.value))
        self._output = attention.output.weight

    def new_room(self, rows: int, capacity: int) -> Float[Tensor, "row position 2 head d_head"]:
        """Memory for keys, then values."""
        return self._output.new_empty(rows, capacity, 2, self.n_heads, len(self._output) // self.n_heads)


class _CrossAttention(_Attention):
    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__(attention)
        self.query, self.kv = _linear(attention.query), _product(*side_by_side(attention.key, attention.value))


class _Around:
    """`layers.AddNorm` with the last product of its sublayer, whose other sums it is given as `inner`."""

    def __init__(self, part: AddNorm, last: nn.Linear) -> None:
        self._address, self._residual, self._placement = part.address, part.residual, part.placement
        self._norm = _normed_by(part.norm)
        self._before, self._after = (_normed_by(part.norm if part.placement == at else None) for at in ("pre", "post"))
        self._bias, self._across = last.bias, _across(last.weight)

    def __call__(self, x: States, inner: Map, tap: Tap | None) -> States:
        if tap is not None:
            return self._offered(x, inner, tap)
        found = inner(self._before(x))
        if self._residual:  # the sum within the product
            return self._after((x + self._bias).addmm_(found, self._across))
        return self._after(torch.addmm(self._bias, found, self._across))

    def _offered(self, x: States, inner: Map, tap: Tap) -> States:
        x = _offer(self._address, tap, "input", x)
        residual = _offer(self._address, tap, "residual", x) if self._residual else None
        found = inner(self._normed(x, tap) if self._placement == "pre" else x)
        x = _offer(self._address, tap, "output", torch.addmm(self._bias, found, self._across))
        x = x if residual is None else residual + x
        return self._normed(x, tap) if self._placement == "post" else x

    def _normed(self, x: States, tap: Tap) -> States:
        return _offer(self._address, tap, "normed", self._norm(x))


class _Origin:
    """Everything that weights were laid out from, to tell any edit of it, in place or not.

    Versions of tensors miss edits through `.data`, numpy and fused training steps, so contents are compared byte by
    byte, which costs less than one step of the decoder.
    """

    def __init__(self, model: Transformer, parameters: list[nn.Parameter]) -> None:
        held = [
            entry
            for module in (*model.decoder.modules(), model.projection)
            for entry in (*_settings(module), *_entries(module._parameters), *_entries(module._modules))
        ]
        held += [entry for entry in _entries(model._modules) if entry[1] in ("decoder", "projection")]
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


_KEPT: WeakKeyDictionary[Transformer, tuple[_Origin, _Weights]] = WeakKeyDictionary()


def _weights_of(model: Transformer) -> _Weights:
    """The model's weights laid out: on a CPU once for a model at rest, and again after any edit of it. Always anew for
    one in training, which changes all the time, and on other devices, where weights are not transposed."""
    if model in _KEPT and _KEPT[model][0].is_unchanged():
        return _KEPT[model][1]
    _KEPT.pop(model, None)
    parameters = list(dict.fromkeys([*model.decoder.parameters(), *model.projection.parameters()]))
    weights = _Weights(model)
    if all(p.device.type == "cpu" and p.is_contiguous() and not p.requires_grad for p in parameters):
        _KEPT[model] = _Origin(model, parameters), weights
    return weights


def _linear(linear: nn.Linear) -> Map:
    return _product(linear.weight, linear.bias)


def _product(weight: Tensor, bias: Tensor | None) -> Map:
    """x W^T + b."""
    across = _across(weight)
    return (lambda x: torch.mm(x, across)) if bias is None else (lambda x: torch.addmm(bias, x, across))


def _across(weight: Tensor) -> Tensor:
    """The matrix transposed; on a CPU in that order in memory too, which makes a product with few rows up to twice as
    fast."""
    return weight.t().contiguous() if weight.device.type == "cpu" else weight.t()


def _normed_by(norm: nn.Module | None) -> Map:
    if norm is None:
        return lambda x: x
    assert isinstance(norm, nn.LayerNorm)
    shape, weight, bias, epsilon = norm.normalized_shape, norm.weight, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


def _offer(address: Address, tap: Tap | None, name: str, x: States) -> States:
    """The tap's answer to x, offered as [row 1 d_model]."""
    return x if tap is None else address.offer(tap, name, x.unsqueeze(1)).squeeze(1)


_OUTSIDE, _FINAL = Address("decoder"), Address("decoder", sublayer="final")
