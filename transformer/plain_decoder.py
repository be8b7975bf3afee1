"""The decoder one token at a time, where nobody records or changes anything: the sums of `Transformer.decode` in fewer
calls and in memory set aside once, which at small sizes is most of the work. Tests hold the two equal.
"""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, fused_attention, side_by_side
from transformer.layers import AddNorm, DecoderLayer
from transformer.masks import AttentionMask, key_mask
from transformer.model import Transformer
from transformer.positions import AlibiPositions, RotaryPositions

States = Float[Tensor, "row d_model"]
Map = Callable[[Tensor], Tensor]


class PlainDecoder:
    """The logits after one target token after another, for sources that are encoded already.

    Rows may be reordered, dropped and repeated between two tokens. For a model in evaluation with a causal mask, whose
    weights stay as they are meanwhile.
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
        """`per_source` rows side by side belong to each source and read the same keys and values of it."""
        positions = model.decoder.embedding.positions
        self._places = None if positions is None else positions(0, capacity)
        self._weights, self._per_source = _weights_of(model), per_source
        rows = per_source * len(memory)
        self._targets = [_Target(layer.self_attention, rows, capacity) for layer in self._weights.layers]
        self._sources = [_Source(layer.cross_attention, memory) for layer in self._weights.layers]
        self._source_mask = source_mask
        self._mask = AttentionMask.of(key_mask(source_mask), memory.dtype)
        self.length = 0
        """Target positions held."""

    @torch.no_grad()
    def logits(self, tokens: Int[Tensor, "row"]) -> Float[Tensor, "row vocab"]:
        """Logits of the token after these, which follow those given before."""
        return self._weights.project(self._state(tokens))

    @torch.inference_mode()
    def _state(self, tokens: Int[Tensor, "row"]) -> States:
        x = self._weights.vectors.index_select(0, tokens)
        if self._places is not None:
            x += self._places[self.length]
        for layer, target, source in zip(self._weights.layers, self._targets, self._sources, strict=True):
            x = layer.around_self.after(x, target.context(layer.around_self.before(x), self.length))
            x = layer.around_cross.after(x, source.context(layer.around_cross.before(x), self._mask))
            x = layer.around_ffn.after(x, layer.activation(layer.inner(layer.around_ffn.before(x))))
        self.length += 1
        return self._weights.norm(x)

    @torch.inference_mode()
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

    def context(self, x: States, start: int) -> States:
        """What each row gathered from its target positions, its newest the one at `start`."""
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
        return fused_attention(q, k, v, _EVERY_KEY, bias=bias, scale=weights.scale).flatten(1)

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

    def context(self, x: States, mask: AttentionMask) -> States:
        """What each row gathered from its source: rows of one source ask together."""
        weights, n_sources = self._weights, len(self._k)
        q = weights.query(x).view(n_sources, -1, weights.n_heads, self._k.size(-1)).transpose(1, 2)
        return fused_attention(q, self._k, self._v, mask, scale=weights.scale).transpose(1, 2).reshape(x.shape)

    def rows(self, kept: Tensor) -> None:
        self._k, self._v = self._k[kept], self._v[kept]


class _Weights:
    """A decoder's matrices, laid out for products with few rows."""

    def __init__(self, model: Transformer) -> None:
        embedding = model.decoder.embedding
        self.vectors = embedding.tokens.weight * embedding.scale
        self.layers = [_Layer(layer) for layer in model.decoder.layers if isinstance(layer, DecoderLayer)]
        self.norm = _normed_by(model.decoder.norm)
        self.project = _product(model.projection.weight, model.projection.bias)


class _Layer:
    def __init__(self, layer: DecoderLayer) -> None:
        self.self_attention = _SelfAttention(layer.self_attention)
        self.cross_attention = _CrossAttention(layer.cross_attention)
        self.inner = _linear(layer.feed_forward.inner)
        self.activation = layer.feed_forward.activation
        self.around_self = _Around(layer.add_norm_self, layer.self_attention.output)
        self.around_cross = _Around(layer.add_norm_cross, layer.cross_attention.output)
        self.around_ffn = _Around(layer.add_norm_ffn, layer.feed_forward.outer)


class _SelfAttention:
    def __init__(self, attention: MultiHeadAttention) -> None:
        self.n_heads, self.scale, self.relative = attention.n_heads, attention.scale, attention.relative
        self.qkv = _product(*side_by_side(attention.query, attention.key, attention.value))
        self._output = attention.output.weight

    def new_room(self, rows: int, capacity: int) -> Float[Tensor, "row position 2 head d_head"]:
        """Memory for keys, then values."""
        return self._output.new_empty(rows, capacity, 2, self.n_heads, len(self._output) // self.n_heads)


class _CrossAttention:
    def __init__(self, attention: MultiHeadAttention) -> None:
        self.n_heads, self.scale = attention.n_heads, attention.scale
        self.query, self.kv = _linear(attention.query), _product(*side_by_side(attention.key, attention.value))


class _Around:
    """A sublayer's last product, the residual sum and the layer norm, placed as in `layers.AddNorm`."""

    def __init__(self, part: AddNorm, last: nn.Linear) -> None:
        self.before = _normed_by(part.norm if part.placement == "pre" else None)
        self._norm = _normed_by(part.norm if part.placement == "post" else None)
        self._residual, self._bias, self._across = part.residual, last.bias, _across(last.weight)

    def after(self, x: States, context: Float[Tensor, "row inner"]) -> States:
        if self._residual:
            return self._norm((x + self._bias).addmm_(context, self._across))
        return self._norm(torch.addmm(self._bias, context, self._across))


_KEPT: WeakKeyDictionary[Transformer, tuple[list[nn.Parameter], list[tuple[int, int]], _Weights]] = WeakKeyDictionary()


def _weights_of(model: Transformer) -> _Weights:
    """The model's weights laid out: once for one at rest, again where any was changed since; always anew for one in
    training, whose fused steps leave the versions of the weights as they were."""
    if model in _KEPT:
        parameters, before, weights = _KEPT[model]
        if _versions(parameters) == before:
            return weights
    parameters, weights = [*model.decoder.parameters(), *model.projection.parameters()], _Weights(model)
    if (now := _versions(parameters)) is not None:
        _KEPT[model] = parameters, now, weights
    return weights


def _versions(parameters: list[nn.Parameter]) -> list[tuple[int, int]] | None:
    """What tells a change of weights at rest; None where any is in training."""
    if any(parameter.requires_grad for parameter in parameters):
        return None
    return [(parameter.data_ptr(), parameter._version) for parameter in parameters]


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


_EVERY_KEY = AttentionMask(torch.ones(1, 1, 1, 1, dtype=torch.bool), None, None)
