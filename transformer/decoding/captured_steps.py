"""The decoder one token at a time on a GPU, where launching a step's two hundred kernels takes longer than they do.

It computes the function of plain_steps.py in shapes that never change: attention runs over all places set aside, those
not yet written hidden, and rows that have left the batch are computed in vain. So a step can be captured as a CUDA
graph and replayed in one launch. Weights stay as they are meanwhile; each search captures its own graph.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.decoding.cached_steps import check_cacheable
from transformer.decoding.laid_out import States, laid_out
from transformer.decoding.plain_encoder import encode
from transformer.decoding.plain_parts import Layer, places, plan_of
from transformer.decoding.plain_steps import Source, Sources, scale_of
from transformer.model.attention import MultiHeadAttention
from transformer.model.masks import AttentionMask, key_mask
from transformer.model.taps import Tap
from transformer.model.transformer import Transformer

FIRST_STEPS = 3
"""Steps before the capture: the libraries set themselves up in them, and short outputs need no graph."""
MAX_PLACES = 2**14
"""Rows times places up to which launches are most of the work, so that hidden places cost little: at 6,600 a captured
step is 1.4 times as fast as a plain one, at 26,600 slower (BENCHMARKS.md, "On a GPU")."""


def captures(model: Transformer, rows: int, capacity: int) -> bool:
    """Tells whether steps of a model that `PlainSteps` serves are captured here: its positions are all added to the
    embeddings, and the kernels are small."""
    attentions = [module for module in model.decoder.modules() if isinstance(module, MultiHeadAttention)]
    is_relative = any(attention.relative is not None for attention in attentions)
    return model.projection.weight.is_cuda and not is_relative and rows * capacity <= MAX_PLACES


class CapturedSteps:
    """The logits after one target token after another, as `PlainSteps` gives them."""

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
        """As for `PlainSteps`."""
        check_cacheable(model, capacity)
        self._weights = laid_out(model)
        self._plan = plan_of(self._weights)
        self._places = places(model.decoder.embedding, self._plan.carried, capacity)
        mask = AttentionMask.of(key_mask(source_mask), model.projection.weight.dtype)
        memory = encode(model, self._weights, self._plan, source, mask)
        self._sources = Sources(self._weights, memory, mask, per_source)
        attentions = [layer.self_attention for layer in self._weights.layers]
        self._scales = list(map(scale_of, attentions))
        self._n_rows, self._n_heads = memory.size(0) * per_source, attentions[0].n_heads
        d_head = memory.size(-1) // self._n_heads
        # Zeros: hidden places are weighed 0, and 0 times what memory happened to hold may be NaN.
        self._held = memory.new_zeros(len(attentions), 2, self._n_rows, self._n_heads, capacity, d_head)
        self._term = memory.new_full((1, 1, capacity), -torch.inf)
        self._window = model.config.window if 0 < model.config.window < capacity - 1 else None
        self._tokens, self._at = source.new_zeros(self._n_rows), source.new_zeros(1)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._replayed: Tensor | None = None
        self.length = 0
        """Target positions held."""

    @torch.no_grad()
    def logits(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> Float[Tensor, "row vocab"]:
        """Logits of the token after these, which follow those given before; ValueError for a tap, which would see
        nothing."""
        if tap is not None:
            raise ValueError("captured decoding offers nothing to a tap: decode by StepDecoder")
        if self.length == self._term.size(2):
            raise ValueError(f"all {self.length} places are taken")
        self._tokens[: tokens.size(0)] = tokens
        if self.length == FIRST_STEPS and self._tokens.is_cuda:
            self._capture()
        self.length += 1
        if self._graph is None or self._replayed is None:
            return self._step()[: tokens.size(0)]
        self._graph.replay()
        return self._replayed[: tokens.size(0)].clone()  # the next replay writes into the same memory

    @torch.no_grad()
    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        kept = torch.cat((kept, kept.new_zeros(self._n_rows - kept.size(0))))
        held = self._held.narrow(4, 0, self.length)
        held.copy_(held.index_select(2, kept))
        if not same_sources:
            self._sources.rows(kept, in_place=True)

    def _capture(self) -> None:
        """Records a step as a graph; nothing is computed meanwhile."""
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")  # other threads of a server go on
            try:
                self._replayed = self._step()
            finally:
                graph.capture_end()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = graph

    def _step(self) -> Float[Tensor, "row vocab"]:
        if self._window is not None:  # what has left it; a place to come before there is any
            self._term.index_fill_(2, (self._at - self._window - 1) % self._term.size(2), -torch.inf)
        self._term.index_fill_(2, self._at, 0.0)  # this place and those before it are seen
        x = self._weights.vectors.index_select(0, self._tokens)
        if self._places is not None:
            x = x + self._places.index_select(0, self._at)
        for layer, held, scale, source in zip(
            self._plan.layers, self._held, self._scales, self._sources.held, strict=True
        ):
            x = self._layer(layer, x, held, scale, source)
        self._at += 1
        return self._weights.project(x if self._weights.norm is None else self._weights.norm(x))

    def _layer(self, layer: Layer, x: States, held: Tensor, scale: float, source: Source) -> States:
        found = layer.own.open(x).view(self._n_rows, 3, self._n_heads, -1)
        held.index_copy_(3, self._at, found[:, 1:].transpose(0, 1).unsqueeze(3))
        keys, values = held.flatten(1, 2).unbind()  # -> [row*head place d_head] each
        q = found[:, 0].reshape(-1, 1, keys.size(-1))
        scores = torch.baddbmm(self._term, q, keys.transpose(1, 2), alpha=scale)
        x = layer.own.close(x, scores.softmax(-1).bmm(values).view(x.shape))
        x = layer.cross.close(x, self._sources.context(layer.cross.open(x), source))
        return layer.ffn.close(x, layer.activation(layer.ffn.open(x)))
