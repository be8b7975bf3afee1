"""The decoder one token at a time, with a cache of keys and values, every tensor of it open to a tap.

The sums are those of `Transformer.decode` in fewer calls and in memory set aside once. Tests hold the two equal, site
by site. Where nobody looks, plain_steps.py is quicker.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.decoding.laid_out import States, Sublayer, keys_and_values, laid_out
from transformer.model.attention import MultiHeadAttention, explicit_attention
from transformer.model.kinds import AttentionKind
from transformer.model.masks import key_mask, open_to
from transformer.model.positions import AlibiPositions, RotaryPositions
from transformer.model.taps import Address, Tap
from transformer.model.transformer import Transformer


class StepDecoder:
    """The logits after one target token after another, for sources that are encoded already.

    Each token passes the decoder alone; the keys and values of those before it are kept. Rows may be reordered, dropped
    and repeated between two tokens. For a model in evaluation with a causal mask, whose weights stay as they are
    meanwhile.
    """

    def __init__(
        self,
        model: Transformer,
        memory: Float[Tensor, "row length d_model"],
        source_mask: Bool[Tensor, "row length"],
        *,
        capacity: int,
    ) -> None:
        """ValueError for more than the model's `max_length` tokens, and for a model without a causal mask, whose
        earlier states depend on later tokens."""
        check_cacheable(model, capacity)
        positions = model.decoder.embedding.positions
        self._places = None if positions is None else positions(capacity)
        self._config = model.config
        self._weights = laid_out(model)
        self._targets = [_Target(layer.self_attention, memory, capacity) for layer in self._weights.layers]
        held = keys_and_values(self._weights, memory)
        self._sources = [
            _Source(layer.cross_attention, *kv) for layer, kv in zip(self._weights.layers, held, strict=True)
        ]
        self._mask = key_mask(source_mask)
        self.length = 0
        """Target positions held."""

    @torch.no_grad()
    def logits(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> Float[Tensor, "row vocab"]:
        """Logits of the token after these, which follow those given before.

        The tap is offered every tensor of the decoder, with 1 as the number of queries.
        """
        x = _offer(_OUTSIDE, tap, "embedding", self._weights.vectors.index_select(0, tokens))
        if self._places is not None:
            x = x + _offer(_OUTSIDE, tap, "positions", self._places[self.length].expand_as(x))
        own = open_to(self._config, AttentionKind.DECODER_SELF, 1, self.length + 1, device=x.device)
        assert own is not None, "a model whose keys can be kept has a causal mask"
        for layer, target, source in zip(self._weights.layers, self._targets, self._sources, strict=True):
            x = _around(layer.around_self, x, lambda found, t=target: t.context(found, self.length, own, tap), tap)
            x = _around(layer.around_cross, x, lambda found, s=source: s.context(found, self._mask, tap), tap)
            x = _around(layer.around_ffn, x, layer.activation, tap)
        self.length += 1
        if self._weights.norm is not None:
            x = _offer(_FINAL, tap, "normed", self._weights.norm(x))
        return _OUTSIDE.offer(tap, "logits", self._weights.project(x))

    @torch.no_grad()
    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        for target in self._targets:
            target.rows(kept, self.length)
        if not same_sources:
            for source in self._sources:
                source.rows(kept)
            self._mask = self._mask[kept]


def check_cacheable(model: Transformer, capacity: int) -> None:
    """ValueError for a model whose keys and values cannot be kept, and for more tokens than it takes."""
    if not model.config.causal_mask:
        raise ValueError("a model without a causal mask cannot reuse keys and values: decode with cache=False")
    if capacity > (longest := model.config.max_length):
        raise ValueError(f"this model takes at most {longest} tokens (max_length), not {capacity}")


class _Target:
    """Keys and values of the target positions so far, in memory set aside once."""

    def __init__(self, attention: MultiHeadAttention, memory: Tensor, capacity: int) -> None:
        self._attention, n_heads = attention, attention.n_heads
        shape = (len(memory), capacity, 2, n_heads, memory.size(-1) // n_heads)  # -> [row position 2 head d_head]
        self._held, self._spare = memory.new_empty(shape), memory.new_empty(shape)

    def context(
        self, found: Float[Tensor, "row qkv"], start: int, mask: Bool[Tensor, "1 position"], tap: Tap | None
    ) -> States:
        """Returns what each row gathered from its target positions, the newest at `start`."""
        held, relative, bias = self._held, self._attention.relative, None
        found = found.view(len(found), 3, self._attention.n_heads, -1)
        q = found.select(1, 0).unsqueeze(2)
        held[:, start] = found[:, 1:]
        if isinstance(relative, RotaryPositions):
            q = relative(q, start)
            held[:, start, 0] = relative(found[:, 1, :, None], start)[:, :, 0]
        elif isinstance(relative, AlibiPositions):
            bias = relative(1, start + 1)
        k, v = held[:, : start + 1].permute(2, 0, 3, 1, 4).unbind()  # -> [row head position d_head] each
        return _attend(self._attention, q, k, v, mask[None, None], bias, tap)

    def rows(self, kept: Tensor, length: int) -> None:
        """The first `length` positions of these rows, copied into the other half of the memory."""
        target = self._spare[: len(kept)]
        torch.index_select(self._held[:, :length], 0, kept, out=target[:, :length])
        self._held, self._spare = target, self._held


class _Source:
    """Keys and values of the sources."""

    def __init__(self, attention: MultiHeadAttention, keys: Tensor, values: Tensor) -> None:
        self._attention, self._k, self._v = attention, keys, values

    def context(self, found: States, mask: Tensor, tap: Tap | None) -> States:
        """Returns what each row gathered from its source."""
        q = found.view(len(found), self._attention.n_heads, 1, -1)
        return _attend(self._attention, q, self._k, self._v, mask, None, tap)

    def rows(self, kept: Tensor) -> None:
        self._k, self._v = self._k[kept], self._v[kept]


def _attend(
    attention: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, bias: Tensor | None, tap: Tap | None
) -> States:
    """The heads' contexts side by side."""
    found = explicit_attention(
        q, k, v, mask, bias=bias, score=attention.score, address=attention.address, tap=tap
    )  # -> [row head 1 d_head]
    return found.flatten(1)


def _around(part: Sublayer, x: States, inner: Callable[[Tensor], Tensor], tap: Tap | None) -> States:
    """`layers.AddNorm` around a sublayer whose sums between its first and its last product are `inner`."""
    x = _offer(part.address, tap, "input", x)
    residual = _offer(part.address, tap, "residual", x) if part.residual else None
    found = inner(part.first(_normed(part, x, tap) if part.placement == "pre" else x))
    x = _offer(part.address, tap, "output", part.last(found))
    x = x if residual is None else residual + x
    return _normed(part, x, tap) if part.placement == "post" else x


def _normed(part: Sublayer, x: States, tap: Tap | None) -> States:
    assert part.norm is not None, "only a placement of none has no norm"
    return _offer(part.address, tap, "normed", part.norm(x))


def _offer(address: Address, tap: Tap | None, name: str, x: States) -> States:
    """The tap's answer to x, offered as [row 1 d_model]."""
    return x if tap is None else address.offer(tap, name, x.unsqueeze(1)).squeeze(1)


_OUTSIDE, _FINAL = Address("decoder"), Address("decoder", sublayer="final")
