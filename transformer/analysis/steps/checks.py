"""Checks of single decoding steps: the logit lens, contributions, and the distribution that a token is drawn from.

Depths are read off shortened copies of the model. Contributions are measured the other way round: the direction between
two tokens is carried back from the logits, where `logit_lens` carries every part forward to them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor, nn

from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.logit_lens import Part
from transformer.analysis.steps.samples import Sampling
from transformer.interventions import Intervention, compile_interventions
from transformer.model.layers import AddNorm, DecoderLayer
from transformer.model.precise import in_double
from transformer.model.taps import Recorder, Recording, chain
from transformer.model.transformer import Transformer

_TIE = 1e-6
"""Probabilities closer than that to a limit may fall on either side of it by rounding."""


@torch.no_grad()
def check_depths(
    model: Transformer,
    source: Sequence[int],
    prefix: Sequence[int],
    switches: Sequence[Intervention],
    log_probs: Float[ndarray, "depth vocab"],
) -> Check:
    """Checks that each depth is what a model writes next whose decoder ends there, after a prefix (no bos)."""
    precise = in_double(model)
    tap = compile_interventions(switches, precise) or Recorder(lambda site: False)
    layers, again = list(precise.decoder.layers), []
    ids = torch.tensor([list(source)]), torch.tensor([[model.config.bos_id, *prefix]])
    for depth in range(len(layers) + 1):
        precise.decoder.layers = nn.ModuleList(layers[:depth])
        again.append(precise(*ids, tap=tap)[0, -1].log_softmax(dim=-1).numpy())
    how = "log-probabilities of decoders shortened to each depth, in double precision, without a cache"
    return agree("Each depth is what a decoder that ends there would write", log_probs, again, 2e-3, how)


@torch.no_grad()
def check_contributions_of_parts(
    model: Transformer,
    source: Sequence[int],
    prefix: Sequence[int],
    switches: Sequence[Intervention],
    token: int,
    other: int,
    shown: Sequence[tuple[Part, float]],
) -> Check:
    """Checks how much embedding, positions, each head and each feed-forward raise one logit above another."""
    precise = in_double(model)
    recorder = Recorder(lambda site: site.stack == "decoder")
    ids = torch.tensor([list(source)]), torch.tensor([[model.config.bos_id, *prefix]])
    precise(*ids, tap=chain(compile_interventions(switches, precise), recorder))
    again = _Backwards(precise, recorder.recording).contributions(token, other)
    named = [(part, value) for part, value in shown if part.kind not in ("biases", "switches")]
    scale = max(1.0, *(abs(value) for value in again.values()))
    how = f"the direction between both tokens carried back through the decoder to {len(named)} parts, one by one"
    claim = "Each part raises one logit above the other by so much"
    wanted = [again.get(part, math.nan) for part, _ in named]
    if len(named) != len(again) or {part for part, _ in named} != set(again):
        return Check(claim, math.inf, 1e-3 * scale, f"{how}; {len(again)} parts write to the stream")
    return agree(claim, [value for _, value in named], wanted, 1e-3 * scale, how)


class _Backwards:
    """A direction at the logits, walked back through a recorded pass at its newest position."""

    def __init__(self, precise: Transformer, recording: Recording) -> None:
        self._model, self._recording = precise, recording

    def contributions(self, token: int, other: int) -> dict[Part, float]:
        model = self._model
        direction = model.projection.weight[token] - model.projection.weight[other]
        found: dict[Part, float] = {}
        if isinstance(model.decoder.norm, nn.LayerNorm):
            last = len(model.decoder.layers) - 1
            direction = _through(model.decoder.norm, self._sum(last, "ffn"), direction)
        for layer in reversed(range(len(model.decoder.layers))):
            for sublayer in ("ffn", "cross", "self"):
                around = self._around(layer, sublayer)
                if around.norm is not None and around.placement == "post":
                    direction = _through(around.norm, self._sum(layer, sublayer), direction)
                found |= self._written(layer, sublayer, direction)
                direction = direction * around.residual
        for kind in ("embedding", "positions"):
            if f"decoder.{kind}" in map(str, self._recording):
                found[Part(kind)] = float(self._at(kind) @ direction)
        return found

    def _written(self, layer: int, sublayer: str, direction: Tensor) -> dict[Part, float]:
        """Returns what a sublayer's parts put along a direction; 0 where a switch replaced its output."""
        part = self._model.decoder.layers[layer]
        assert isinstance(part, DecoderLayer)
        output = self._at(f"{layer}.{sublayer}.output")
        if sublayer == "ffn":
            read = "normed" if self._around(layer, sublayer).placement == "pre" else "input"
            made = part.feed_forward(self._at(f"{layer}.ffn.{read}")[None, None].clone())[0, 0]
            kept = torch.allclose(made, output, rtol=1e-6, atol=1e-8)
            return {Part("ffn", layer, "ffn"): float((output - part.feed_forward.outer.bias) @ direction) * kept}
        attention = getattr(part, f"{sublayer}_attention")
        heads, weights = (
            self._recording[f"decoder.{layer}.{sublayer}.{name}"][0, :, -1] for name in ("heads", "weights")
        )
        values = self._recording[f"decoder.{layer}.{sublayer}.v"][0]
        kept = torch.allclose(attention.output(heads.flatten()), output, rtol=1e-6, atol=1e-8)
        size, found = heads.size(-1), {}
        for head, gathered in enumerate(heads):
            columns = slice(head * size, (head + 1) * size)
            if torch.allclose(weights[head] @ values[head], gathered, rtol=1e-6, atol=1e-8):  # nothing was put there
                gathered = weights[head] @ (values[head] - attention.value.bias[columns])
            along = (attention.output.weight[:, columns] @ gathered) @ direction
            found[Part("head", layer, sublayer, head)] = float(along) * kept  # type: ignore[arg-type]
        return found

    def _around(self, layer: int, sublayer: str) -> AddNorm:
        return getattr(self._model.decoder.layers[layer], f"add_norm_{sublayer}")

    def _sum(self, layer: int, sublayer: str) -> Tensor:
        output = self._at(f"{layer}.{sublayer}.output")
        return output + self._at(f"{layer}.{sublayer}.residual") if self._around(layer, sublayer).residual else output

    def _at(self, name: str) -> Tensor:
        return self._recording[f"decoder.{name}"][0, -1]


def _through(norm: nn.LayerNorm, x: Tensor, direction: Tensor) -> Tensor:
    """Returns a direction behind a layer norm as one before it, the norm's deviation held at that of x."""
    scaled = direction * norm.weight / torch.sqrt(((x - x.mean()) ** 2).mean() + norm.eps)
    return scaled - scaled.mean()


@dataclass(frozen=True)
class SamplingReference:
    """The distribution that a token is drawn from, worked out token by token."""

    must: Bool[ndarray, " vocab"]
    """Tokens that are kept."""
    may: Bool[ndarray, " vocab"]
    """The same with those that rounding could keep."""
    chances: Float[ndarray, " vocab"]


def sampling_reference(log_probs: Float[ndarray, " vocab"], sampling: Sampling, pad_id: int) -> SamplingReference:
    """Applies temperature, top-k, top-p and min-p in plain Python, in this order."""
    shaped = [p / sampling.temperature for p in log_probs.astype(float).tolist()]
    ranked = sorted((i for i in range(len(shaped)) if i != pad_id), key=lambda i: (-shaped[i], i))
    ranked = ranked[: sampling.top_k] if sampling.top_k else ranked
    odds = [math.exp(shaped[i] - shaped[ranked[0]]) for i in ranked]
    total, before = math.fsum(odds), 0.0
    must, may = np.zeros(len(shaped), dtype=bool), np.zeros(len(shaped), dtype=bool)
    kept = np.zeros(len(shaped))
    for place, (token, odd) in enumerate(zip(ranked, odds, strict=True)):
        room = min(
            sampling.top_p - before / total if sampling.top_p < 1 else 1.0,
            odd - sampling.min_p if sampling.min_p else 1.0,
        )
        must[token], may[token] = place == 0 or room > _TIE, place == 0 or room > -_TIE
        kept[token] = odd if place == 0 or room > 0 else 0.0
        before += odd
    return SamplingReference(must, may, kept / math.fsum(kept))


def check_sampling(
    log_probs: Float[ndarray, " vocab"],
    sampling: Sampling,
    drawn_from: Float[ndarray, " vocab"],
    *,
    pad_id: int,
    whose: str = "",
) -> Iterator[Check]:
    """Checks the log-probabilities that a token is drawn with, given the model's."""
    reference, left = sampling_reference(log_probs, sampling, pad_id), np.isfinite(drawn_from)
    wrong = int((reference.must & ~left).sum() + (left & ~reference.may).sum())
    how = f"{int(left.sum()):,} tokens kept, ranked and counted one by one; tokens that are wrongly in or out"
    claim = f"{whose}Exactly those are kept that temperature, top-k, top-p and min-p leave"
    yield Check(claim, float(wrong), 0.0, how)
    apart = [(log_probs[i] - log_probs[left].max()) / sampling.temperature for i in np.flatnonzero(left)]
    claim = f"{whose}Among the tokens that are kept, the chances are p^(1/temperature), shared out"
    again = np.array(apart) - math.log(math.fsum(map(math.exp, apart)))
    yield agree(claim, drawn_from[left], again, 5e-3, "logarithms of e^(ln p / temperature) shared out again")
