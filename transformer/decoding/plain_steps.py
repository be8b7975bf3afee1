"""The decoder one token at a time where nobody looks: translation, evaluation, studies.

It computes the function of cached_steps.py in fewer calls, which at few rows are most of the work, and is open
to no tap: numbers on a page never come from here. Tests hold its logits equal to those of a whole pass.

All rows and heads are one batched product, which takes scale and bias with it; the rest is in plain_parts.py.
"""

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.decoding.cached_steps import check_cacheable
from transformer.decoding.laid_out import LaidOut, States, keys_and_values, laid_out
from transformer.decoding.plain_encoder import encode
from transformer.decoding.plain_parts import Part, places, plan_of
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import is_autocast
from transformer.model.mask_rules import RuleName, rules_of
from transformer.model.masks import AttentionMask, key_mask
from transformer.model.positions import AlibiPositions, RotaryPositions
from transformer.model.taps import Tap
from transformer.model.transformer import Transformer

_RULES: tuple[RuleName, ...] = ("causal", "window")
"""The rules of masks that plain steps follow."""


def serves(model: Transformer) -> bool:
    """Tells whether `PlainSteps` computes what this model does here and now: it knows no scores but products, no other
    masks than these, and not autocast's precision."""
    scores = [module.score for module in model.modules() if isinstance(module, MultiHeadAttention)]
    device = model.projection.weight.device.type
    knows_masks = all(rule.name in _RULES for rule in rules_of(model.config))
    return knows_masks and all(score.is_dot_product for score in scores) and not is_autocast(device)


class PlainSteps:
    """The logits after one target token after another, as a `StepDecoder` gives them."""

    @torch.no_grad()
    def __init__(
        self,
        model: Transformer,
        source: Int[Tensor, "source length"],
        source_mask: Bool[Tensor, "source length"],
        *,
        capacity: int,
        per_source: int = 1,
    ) -> None:
        """`per_source` rows side by side belong to each source and read the same keys and values of it. ValueError as
        for `StepDecoder`, and for a source longer than the model takes."""
        check_cacheable(model, capacity)
        self._weights = laid_out(model)
        self._plan = plan_of(self._weights)
        self._places = places(model.decoder.embedding, self._plan.carried, capacity)
        mask = AttentionMask.of(key_mask(source_mask), model.projection.weight.dtype)
        memory = encode(model, self._weights, self._plan, source, mask)
        rows, like = memory.size(0) * per_source, memory.new_empty(())
        alone = rows == 1 and not isinstance(self._weights.layers[0].self_attention.relative, RotaryPositions)
        self._targets = (_OneTarget if alone else _Targets)(self._weights, like, rows, capacity)
        self._window = model.config.window or capacity
        self._sources = Sources(self._weights, memory, mask, per_source)
        self.length = 0
        """Target positions held."""

    @torch.no_grad()
    def logits(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> Float[Tensor, "row vocab"]:
        """Logits of the token after these, which follow those given before; ValueError for a tap, which would see
        nothing."""
        if tap is not None:
            raise ValueError("plain decoding offers nothing to a tap: decode by StepDecoder")
        with torch.inference_mode():
            state = self._state(tokens)
        return self._weights.project(state)  # outside: what leaves may be used with gradients

    def _state(self, tokens: Int[Tensor, " row"]) -> States:
        x = self._weights.vectors.index_select(0, tokens)
        if self._places is not None:
            x = x + self._places.select(0, self.length)
        at = self._targets.at(self.length, first=max(0, self.length - self._window))
        for layer, target, source in zip(self._plan.layers, at, self._sources.held, strict=True):
            x = layer.own.close(x, self._targets.context(layer.own, x, target))
            x = layer.cross.close(x, self._sources.context(layer.cross.open(x), source))
            x = layer.ffn.close(x, layer.activation(layer.ffn.open(x)))
        self.length += 1
        return x if self._weights.norm is None else self._weights.norm(x)

    @torch.no_grad()
    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        self._targets.rows(kept, self.length)
        if not same_sources:
            self._sources.rows(kept)


class _Target(NamedTuple):
    """A layer's part of the memory at one position."""

    attention: MultiHeadAttention
    scale: float
    ignored: Float[Tensor, "1 1 1"]
    """A term that is counted 0 times where scores have no bias."""
    position: int
    """The newest position."""
    newest: Any
    """Where it is written, as its memory has it."""
    keys: Float[Tensor, "row_head d_head position"]
    values: Float[Tensor, "row_head position d_head"]


class Source(NamedTuple):
    """A layer's keys and values of the sources."""

    keys: Float[Tensor, "source_head d_head length"]
    values: Float[Tensor, "source_head length d_head"]


class _Targets:
    """Keys and values of the target positions so far, of all layers, in memory set aside once."""

    def __init__(self, weights: LaidOut, like: Tensor, rows: int, capacity: int) -> None:
        attentions = [layer.self_attention for layer in weights.layers]
        self._constants = (attentions, list(map(scale_of, attentions)), [like.new_zeros(1, 1, 1)] * len(attentions))
        self._n_heads, self._d_head = attentions[0].n_heads, _d_head(attentions[0])
        self._held = like.new_empty(len(attentions), 2, rows, self._n_heads, capacity, self._d_head)
        self._spare: Tensor | None = None

    def at(self, position: int, *, first: int) -> Iterator[_Target]:
        """Returns the views of the memory with which each layer's newest position stands at this one and sees those
        from `first` on."""
        held = self._held.narrow(4, first, position + 1 - first)
        keys, values = held.flatten(2, 3).unbind(1)  # -> [layer row*head position d_head] each
        newest = self._held.select(4, position).unbind()
        keys = keys.transpose(2, 3).unbind()
        return map(_Target, *self._constants, repeat(position), newest, keys, values.unbind())

    def context(self, part: Part, x: States, at: _Target) -> States:
        """Returns what each row gathered."""
        relative = at.attention.relative
        found = part.open(x).view(-1, 3, self._n_heads, self._d_head)
        if isinstance(relative, RotaryPositions):
            turned = relative(found[:, :2].flatten(1, 2)[:, :, None], at.position)
            found = torch.cat((turned.view_as(found[:, :2]), found[:, 2:]), dim=1)
        at.newest.copy_(found.narrow(1, 1, 2).transpose(0, 1))
        q = found.select(1, 0).reshape(-1, 1, self._d_head)
        return _gathered(q, at).view(x.shape)

    def rows(self, kept: Tensor, length: int) -> None:
        """The first `length` positions of these rows, copied into the other half of the memory."""
        spare = torch.empty_like(self._held) if self._spare is None else self._spare
        target = spare.narrow(2, 0, kept.size(0))
        torch.index_select(self._held.narrow(4, 0, length), 2, kept, out=target.narrow(4, 0, length))
        self._held, self._spare = target, self._held


class _OneTarget:
    """The same for a single row, whose queries, keys and values are written straight into their place."""

    def __init__(self, weights: LaidOut, like: Tensor, rows: int, capacity: int) -> None:
        attentions = [layer.self_attention for layer in weights.layers]
        self._constants = (attentions, list(map(scale_of, attentions)), [like.new_zeros(1, 1, 1)] * len(attentions))
        held = like.new_empty(len(attentions), capacity, 3, attentions[0].n_heads, _d_head(attentions[0]))
        self._held = held.flatten(2)  # -> [layer position qkv]
        self._queries = held[:, :, 0, :, None]  # -> [layer position head 1 d_head]
        self._keys = held[:, :, 1].permute(0, 2, 3, 1)  # -> [layer head d_head position]
        self._values = held[:, :, 2].transpose(1, 2)  # -> [layer head position d_head]

    def at(self, position: int, *, first: int) -> Iterator[_Target]:
        """As `_Targets.at`."""
        newest = zip(
            self._held.narrow(1, position, 1).unbind(), self._queries.select(1, position).unbind(), strict=True
        )
        n_seen = position + 1 - first
        keys, values = self._keys.narrow(3, first, n_seen).unbind(), self._values.narrow(2, first, n_seen).unbind()
        return map(_Target, *self._constants, repeat(position), newest, keys, values)

    def context(self, part: Part, x: States, at: _Target) -> States:
        """Returns what the row gathered."""
        room, q = at.newest
        torch.addmm(part.bias, x if part.before is None else part.before(x), part.across, out=room)
        return _gathered(q, at).view(x.shape)

    def rows(self, kept: Tensor, length: int) -> None:
        """Nothing: one row cannot change its place."""


def _gathered(q: Float[Tensor, "row_head 1 d_head"], at: _Target) -> Float[Tensor, "row_head 1 d_head"]:
    """What the newest position of each row gathered from all positions so far."""
    if isinstance(at.attention.relative, AlibiPositions):
        bias = at.attention.relative(1, at.keys.size(2))[0].to(q.dtype)
        bias = bias.repeat(q.size(0) // bias.size(0), 1, 1)  # -> [row*head 1 position]
        scores = torch.baddbmm(bias, q, at.keys, alpha=at.scale)
    else:
        scores = torch.baddbmm(at.ignored, q, at.keys, beta=0, alpha=at.scale)
    return scores.softmax(-1).bmm(at.values)


class Sources:
    """Keys and values of the sources, of all layers. Keys are scaled already; the values of a source of which nothing
    may be seen are 0."""

    def __init__(self, weights: LaidOut, memory: Tensor, mask: AttentionMask, per_source: int) -> None:
        self._per_source = per_source
        self._kv = keys_and_values(weights, memory)
        for layer, held in zip(weights.layers, self._kv, strict=True):
            held[0].mul_(scale_of(layer.cross_attention))
        if mask.blank is not None:
            self._kv[:, 1].masked_fill_(mask.blank, 0.0)
        self._mask = None if mask.fused is None else _as_term(mask.fused, memory)
        self._lay()

    def _lay(self) -> None:
        keys, values = self._kv.flatten(2, 3).unbind(1)  # -> [layer source*head length d_head] each
        self.held = list(map(Source, keys.transpose(2, 3).unbind(), values.unbind()))
        self._bias = None if self._mask is None else self._heads_alike(self._mask)

    def _heads_alike(self, mask: Tensor) -> Tensor:
        return mask.expand(-1, self._kv.size(3), -1, -1).flatten(0, 1)

    def context(self, q: States, at: Source) -> States:
        """Returns what each row gathered from its source: rows of one source ask together."""
        n_sources, n_heads, _, d_head = self._kv.shape[2:]
        if self._per_source == 1:
            rows = q.view(-1, 1, d_head)
        else:
            rows = q.view(n_sources, -1, n_heads, d_head).transpose(1, 2).reshape(-1, self._per_source, d_head)
        scores = rows.bmm(at.keys) if self._bias is None else torch.baddbmm(self._bias, rows, at.keys)
        found = scores.softmax(-1).bmm(at.values)
        if self._per_source == 1:
            return found.view(q.shape)
        return found.view(n_sources, n_heads, -1, d_head).transpose(1, 2).reshape(q.shape)

    def rows(self, kept: Tensor, *, in_place: bool = False) -> None:
        """Goes on with the sources of these rows, as many as before where it is done `in_place`."""
        sources = kept[:: self._per_source] // self._per_source
        kv, mask = self._kv.index_select(2, sources), None if self._mask is None else self._mask[sources]
        if not in_place:
            self._kv, self._mask = kv, mask
            self._lay()
            return
        self._kv.copy_(kv)
        if mask is not None and self._mask is not None and self._bias is not None:
            self._mask.copy_(mask)
            self._bias.copy_(self._heads_alike(mask))


def _as_term(fused: Tensor, like: Tensor) -> Float[Tensor, "source 1 1 length"]:
    """The mask as a term of the scores."""
    return like.new_zeros(fused.shape).masked_fill_(~fused, -torch.inf) if fused.dtype == torch.bool else fused


def _d_head(attention: MultiHeadAttention) -> int:
    return attention.query.out_features // attention.n_heads


def scale_of(attention: MultiHeadAttention) -> float:
    """Returns the factor of the products of queries and keys."""
    scale = attention.score.fused_scale
    return 1 / math.sqrt(_d_head(attention)) if scale is None else scale
