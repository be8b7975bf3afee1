"""Queries, keys and values of one kind of attention in all layers and heads, recorded while a sentence is decoded.

From the values come the norms of contributions: what a head moves at a key is its weight times a vector, and a large
weight on a short vector moves little (Kobayashi et al., 2020, "Attention is Not Only a Weight: Analyzing Transformers
with Vector Norms", EMNLP 2020).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from transformer.decoding.greedy import Constraints, greedy
from transformer.interventions import Intervention, compile_interventions, factors_of_heads
from transformer.model.attention import MultiHeadAttention
from transformer.model.taps import Address, Recording, Site, Stack
from transformer.model.transformer import Transformer

_SITES = ("q", "k", "v", "weights", "heads", "output")


@dataclass(frozen=True)
class Vectors:
    """Arrays as recorded in the passes that wrote the output; a decoder's row is that of its step."""

    q: Float[ndarray, "layer head query d_head"]
    k: Float[ndarray, "layer head key d_head"]
    value_norms: Float[ndarray, "layer head key"]
    """The length of v W_O, times the factor of a switch that scales the head: how much a key's value moves the block's
    output at a weight of 1."""
    reached: Bool[ndarray, "layer head query"]
    """False where a switch replaced the head's context or the block's output, so that nothing of the row is in it."""

    def contributions(self, weights: Float[ndarray, "layer head query key"]) -> Float[ndarray, "layer head query key"]:
        """Returns ||alpha v W_O|| of every cell (Kobayashi et al., 2020): weight times length, in float32.

        W_O's bias is in no cell's contribution. 0 where nothing of the row reached the output.
        """
        norms = weights.astype(np.float64) * self.value_norms[:, :, None, :] * self.reached[..., None]
        return norms.astype(np.float32)


def record_vectors(
    model: Transformer, source: Sequence[int], switches: Sequence[Intervention], stack: Stack, sublayer: str
) -> Vectors:
    """Returns the vectors of every layer's block while the source is decoded greedily under the switches."""
    n_layers = model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers
    addresses = [Address(stack, layer, sublayer) for layer in range(n_layers)]  # type: ignore[arg-type]
    wanted = {address.site(name) for address in addresses for name in _SITES}
    factors = torch.tensor(
        [factors_of_heads(switches, address, model.config.n_heads) for address in addresses], dtype=torch.float64
    )
    passes, in_one_pass = recorded_passes(model, source, switches, addresses[0], wanted)
    newest_only = not in_one_pass
    q: list[Tensor] = []
    reached: list[Tensor] = []
    recording: Recording | None = None
    for recording in passes:
        if in_one_pass:
            q, reached = [], []
        q.append(_stacked(recording, addresses, "q", newest_only))
        reached.append(_reached(model, recording, addresses, factors, newest_only))
    assert recording is not None, "a decoding has at least one step"
    return Vectors(
        q=torch.cat(q, dim=2).numpy(),
        k=_stacked(recording, addresses, "k").numpy(),
        value_norms=(_value_norms(model, addresses, _stacked(recording, addresses, "v")) * factors[..., None]).numpy(),
        reached=torch.cat(reached, dim=2).numpy(),
    )


def recorded_passes(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    block: Address,
    sites: Collection[Site],
    forced: Mapping[int, int] | None = None,
) -> tuple[Iterator[Recording], bool]:
    """Returns these sites in the passes of a greedy decoding, and True if the last pass has all rows of such a block.

    The encoder has one pass. Without a cache the decoder's self-attention is that of its last pass.
    """
    tap = compile_interventions(switches, model)
    steps = greedy(
        model,
        torch.tensor([source]),
        max_length=model.config.max_length,
        constraints=Constraints(forced=forced or {}),
        tap=tap,
        record=sites.__contains__,
    )
    is_encoder = block.stack == "encoder"
    in_one_pass = is_encoder or (block.sublayer == "self" and model.needs_recomputation(tap))
    # One at a time: a long decoding never holds them all.
    passes = (step.recording for step in steps if step.recording is not None)
    return islice(passes, 1 if is_encoder else None), in_one_pass


def _stacked(recording: Recording, addresses: Sequence[Address], name: str, newest: bool = False) -> Tensor:
    """Returns one tensor of all layers [layer head length d]; with `newest`, its last position alone."""
    found = torch.stack([recording[address.site(name)][0] for address in addresses])
    return found[:, :, -1:] if newest else found


def _reached(
    model: Transformer,
    recording: Recording,
    addresses: Sequence[Address],
    factors: Float[Tensor, "layer head"],
    newest: bool,
) -> Bool[Tensor, "layer head query"]:
    """Tells whether weights times values and each head's factor went on to W_O, and its result is the output."""
    weights = _stacked(recording, addresses, "weights", newest).double()
    context = weights @ _stacked(recording, addresses, "v").double() * factors[..., None, None]
    went_on = _stacked(recording, addresses, "heads", newest).double()
    kept = (context - went_on).abs().amax(dim=-1) <= 1e-5 * (1 + context.abs().amax())
    outputs = [recording[address.site("output")][0].double() for address in addresses]
    delivered = [
        is_delivered(attention_at(model, address), heads, output[-1:] if newest else output)
        for address, heads, output in zip(addresses, went_on, outputs, strict=True)
    ]
    return kept & torch.stack(delivered)[:, None]


def is_delivered(
    attention: MultiHeadAttention, heads: Float[Tensor, "head query d_head"], output: Float[Tensor, "query d_model"]
) -> Bool[Tensor, " query"]:
    """Tells for each query whether the block's output is W_O times its heads, not what a switch put there."""
    projection, bias = attention.output.weight.detach().double(), attention.output.bias.detach().double()
    made = heads.double().transpose(0, 1).flatten(1) @ projection.T + bias
    return (made - output.double()).abs().amax(dim=-1) <= 1e-4 * (1 + made.abs().amax())


def attention_at(model: Transformer, address: Address) -> MultiHeadAttention:
    """Returns the attention block at an address."""
    sublayer = model.get_submodule(f"{address.stack}.layers.{address.layer}.{address.sublayer}_attention")
    assert isinstance(sublayer, MultiHeadAttention)
    return sublayer


def _value_norms(model: Transformer, addresses: Sequence[Address], v: Tensor) -> Float[Tensor, "layer head key"]:
    norms = []
    for address, values in zip(addresses, v.double(), strict=True):
        attention = attention_at(model, address)
        projection = attention.output.weight.detach().double().unflatten(1, (attention.n_heads, -1))  # d_model head d
        norms.append(torch.einsum("mhd,hkd->hkm", projection, values).norm(dim=-1))
    return torch.stack(norms)
