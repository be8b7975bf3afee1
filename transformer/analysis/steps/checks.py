"""Proofs of what a decoding step's figures tell: inner depths, contributions, and the tokens that a draw keeps.

Depths are read off shortened copies of the model. Contributions are measured the other way round: the direction between
two tokens is carried back from the logits, where `inside` carries every part forward to them.
"""

import math
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor, nn

from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.logit_lens import Part
from transformer.analysis.steps.samples import Draw
from transformer.interventions import Intervention, compile_interventions
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
    readings: Float[ndarray, "reading vocab"],
) -> Check:
    """That each reading is what a model writes next whose decoder ends at that depth, after a prefix (no bos)."""
    precise = deepcopy(model).double()
    tap = compile_interventions(switches, precise) or Recorder(lambda site: False)
    layers, again = list(precise.decoder.layers), []
    ids = torch.tensor([list(source)]), torch.tensor([[model.config.bos_id, *prefix]])
    for depth in range(len(layers) + 1):
        precise.decoder.layers = nn.ModuleList(layers[:depth])
        again.append(precise(*ids, tap=tap)[0, -1].log_softmax(dim=-1).exp().numpy())
    how = "decoders shortened to each depth, in double precision, without a cache"
    shown = np.exp(readings.astype(np.float64))
    return agree("Each depth is what a decoder that ends there would write", shown, again, 1e-4, how)


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
    """That embedding, positions, each head and each feed-forward raise one logit above another by so much."""
    precise = deepcopy(model).double()
    recorder = Recorder(lambda site: site.stack == "decoder")
    ids = torch.tensor([list(source)]), torch.tensor([[model.config.bos_id, *prefix]])
    precise(*ids, tap=chain(compile_interventions(switches, precise), recorder))
    again = _Backwards(precise, recorder.recording).contributions(token, other)
    named = [(part, value) for part, value in shown if part.kind not in ("biases", "switches")]
    scale = max(1.0, *(abs(value) for value in again.values()))
    how = f"the direction between both tokens carried back through the decoder to {len(named)} parts, one by one"
    claim = "Each part raises one logit above the other by so much"
    wanted = [again.get(part, math.nan) for part, _ in named]
    if len(named) != len(again):
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
                if around.placement == "post":
                    direction = _through(around.norm, self._sum(layer, sublayer), direction)
                found |= self._written(layer, sublayer, direction)
                direction = direction * around.residual
        for kind in ("embedding", "positions"):
            if f"decoder.{kind}" in map(str, self._recording):
                found[Part(kind)] = float(self._at(kind) @ direction)
        return found

    def _written(self, layer: int, sublayer: str, direction: Tensor) -> dict[Part, float]:
        """What a sublayer's parts put along a direction; 0 where a switch replaced its output."""
        part = self._model.decoder.layers[layer]
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

    def _around(self, layer: int, sublayer: str) -> nn.Module:
        return getattr(self._model.decoder.layers[layer], f"add_norm_{sublayer}")

    def _sum(self, layer: int, sublayer: str) -> Tensor:
        output = self._at(f"{layer}.{sublayer}.output")
        return output + self._at(f"{layer}.{sublayer}.residual") if self._around(layer, sublayer).residual else output

    def _at(self, name: str) -> Tensor:
        return self._recording[f"decoder.{name}"][0, -1]


def _through(norm: nn.LayerNorm, x: Tensor, direction: Tensor) -> Tensor:
    """A direction behind a layer norm as one before it, the norm's deviation held at that of x."""
    scaled = direction * norm.weight / torch.sqrt(((x - x.mean()) ** 2).mean() + norm.eps)
    return scaled - scaled.mean()


def check_kept(log_probs: Float[ndarray, "vocab"], draw: Draw, drawn: Float[ndarray, "vocab"], *, pad_id: int) -> Check:
    """That a draw keeps as many tokens as temperature, top-k, top-p and min-p leave, each counted in Python."""
    must, may = _kept(log_probs, draw, pad_id)
    left = np.isfinite(drawn)
    wrong = int((must & ~left).sum() + (left & ~may).sum())
    how = f"{int(left.sum()):,} tokens kept, ranked and counted one by one again; tokens that are wrongly in or out"
    return Check("Exactly those are kept that temperature, top-k, top-p and min-p leave", float(wrong), 0.0, how)


def _kept(
    log_probs: Float[ndarray, "vocab"], draw: Draw, pad_id: int
) -> tuple[Bool[ndarray, "vocab"], Bool[ndarray, "vocab"]]:
    """Tokens that must be kept, and those that may be, where rounding could decide."""
    shaped = [
        -math.inf if i == pad_id else p / draw.temperature for i, p in enumerate(log_probs.astype(float).tolist())
    ]
    ranked = sorted((i for i in range(len(shaped)) if i != pad_id), key=lambda i: (-shaped[i], i))
    ranked = ranked[: draw.top_k] if draw.top_k else ranked
    odds = [math.exp(shaped[i] - shaped[ranked[0]]) for i in ranked]
    total, before = math.fsum(odds), 0.0
    must, may = np.zeros(len(shaped), dtype=bool), np.zeros(len(shaped), dtype=bool)
    for rank, (token, odd) in enumerate(zip(ranked, odds, strict=True)):
        room = min(draw.top_p - before / total if draw.top_p < 1 else 1.0, odd - draw.min_p if draw.min_p else 1.0)
        must[token], may[token] = rank == 0 or room > _TIE, rank == 0 or room > -_TIE
        before += odd
    return must, may
