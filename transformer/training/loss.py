"""Label-smoothed cross-entropy (section 5.4). Not here: which positions are real (evaluation.py selects them)."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from transformer.config import TrainConfig
from transformer.data.batches import BatchStream
from transformer.model.layers import is_autocast

_CHUNK = 2**21
"""Logits held at a time on a CPU: 8 MB, which stay in the cache from the product to the gradient."""
_CHUNK_OF_GPU = 2**27


@dataclass(frozen=True)
class Smoothing:
    """The share of the distribution aimed at that is not the right token's, and where it goes (section 5.4)."""

    share: float = 0.0
    over: Float[Tensor, " vocab"] | None = None
    """The distribution over which the share is spread; None: uniform."""


UNSMOOTHED = Smoothing()


def smoothing_of(config: TrainConfig, stream: BatchStream, vocab_size: int, device: torch.device) -> Smoothing:
    """Returns the smoothing of a training on these batches; only `unigram` reads their text."""
    if config.smoothing == "uniform" or config.label_smoothing == 0:
        return Smoothing(config.label_smoothing)
    counts = torch.from_numpy(stream.target_counts(vocab_size)).float()
    return Smoothing(config.label_smoothing, over=(counts / counts.sum().clamp(min=1)).to(device))


def smoothed_cross_entropy(
    logits: Float[Tensor, "position vocab"], targets: Int[Tensor, " position"], smoothing: Smoothing = UNSMOOTHED
) -> Float[Tensor, ""]:
    """The cross-entropy in nats against 1 - share on the target plus the share spread over all tokens, summed.

    The spread part covers all classes, the target among them (Szegedy et al. 2016, and torch; the authors'
    tensor2tensor spreads it over the others). Only real positions may be given: divide by their number, and across
    accumulated micro-batches by the number in all of them. Computed in float32 whatever the logits' type.
    """
    if smoothing.over is None:
        return F.cross_entropy(logits.float(), targets, label_smoothing=smoothing.share, reduction="sum")
    sharp = F.cross_entropy(logits.float(), targets, reduction="sum")
    return (1 - smoothing.share) * sharp - smoothing.share * _spread(logits.float().log_softmax(-1), smoothing.over)


def projected_cross_entropy(
    states: Float[Tensor, "position d_model"],
    weight: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, " position"],
    smoothing: Smoothing = UNSMOOTHED,
    *,
    compiled: bool = False,
) -> Float[Tensor, ""]:
    """`smoothed_cross_entropy(states @ weight.T, targets, smoothing)` without ever holding all logits.

    They are made some positions at a time, and their gradient at once with them: at a large vocabulary, writing,
    reading and zeroing whole matrices of logits cost more than the products. Products run in autocast's type. Few
    logits take the plain way, which is then as fast. `compiled` lets a GPU pass over the logits in fewer kernels.
    """
    device = states.device.type
    if len(states) * len(weight) <= _CHUNK // 2:
        return smoothed_cross_entropy(F.linear(states, weight), targets, smoothing)
    dtype = torch.get_autocast_dtype(device) if is_autocast(device) else weight.dtype
    return _ProjectedLoss.apply(states, weight, targets, smoothing, dtype, compiled and device == "cuda")


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: Smoothing,
        dtype: torch.dtype,
        compiled: bool,
    ) -> Tensor:
        device = states.device.type
        with torch.autocast(device, enabled=False) if is_autocast(device) else nullcontext():
            x, w = states.detach().to(dtype), weight.detach().to(dtype)
            wanted = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
            rows = max(1, (_CHUNK if device == "cpu" else _CHUNK_OF_GPU) // len(w))
            starts = range(0, len(x), rows)
            if compiled and wanted:
                parts = [_fused_chunk(x[i : i + rows], w, targets[i : i + rows], smoothing) for i in starts]
            else:
                parts = [_chunk(x[i : i + rows], w, targets[i : i + rows], smoothing, wanted) for i in starts]
            if wanted:
                d_states = torch.cat([part[1] for part in parts])
                d_weight = torch.zeros_like(weight)
                for part in parts:
                    d_weight += part[2]
                ctx.save_for_backward(d_states.to(states.dtype), d_weight)
            return torch.stack([part[0] for part in parts]).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        d_states, d_weight = ctx.saved_tensors
        return d_states * gradients[0], d_weight * gradients[0], None, None, None, None


def _chunk(x: Tensor, w: Tensor, targets: Tensor, smoothing: Smoothing, wanted: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of some positions, and its gradients by states and by weight (where not wanted: anything)."""
    logits = x @ w.T
    # Named here, the type is widened within one kernel of a GPU.
    log_probs = logits.log_softmax(dim=-1, dtype=torch.float64 if logits.dtype == torch.float64 else torch.float32)
    chosen = log_probs.gather(1, targets[:, None])
    loss = -(1 - smoothing.share) * chosen.sum()
    if smoothing.share:
        loss = loss - smoothing.share * _spread(log_probs, smoothing.over)
    if not wanted:
        return loss, x, w
    slope = log_probs.exp_()
    if smoothing.share:
        slope -= _shares(smoothing.share, smoothing.over, len(w))
    slope.scatter_add_(1, targets[:, None], torch.full_like(chosen, smoothing.share - 1))
    slope = slope.to(x.dtype)
    return loss, slope @ w, slope.T @ x


def _fused_chunk(x: Tensor, w: Tensor, targets: Tensor, smoothing: Smoothing) -> tuple[Tensor, Tensor, Tensor]:
    """The same as `_chunk` with gradients: in between the products, logits are read a few times and written once."""
    loss, slope = _compiled_slope()(x @ w.T, targets, smoothing.share, smoothing.over)
    return loss, slope @ w, slope.T @ x


def _loss_and_slope(logits: Tensor, targets: Tensor, share: float, over: Tensor | None) -> tuple[Tensor, Tensor]:
    """The loss, and its gradient by the logits in their own type; without the scatter, which no compiler fuses."""
    log_probs = (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(dim=-1)
    loss = -(1 - share) * log_probs.gather(1, targets[:, None]).sum() - share * _spread(log_probs, over)
    is_target = torch.arange(logits.size(1), device=logits.device) == targets[:, None]
    slope = log_probs.exp() - _shares(share, over, logits.size(1)) - (1 - share) * is_target.to(log_probs.dtype)
    return loss, slope.to(logits.dtype)


def _spread(log_probs: Tensor, over: Tensor | None) -> Tensor:
    """The mean log-probability of a token drawn from a distribution, summed over positions."""
    return log_probs.mean(dim=-1).sum() if over is None else (log_probs @ over.to(log_probs.dtype)).sum()


def _shares(share: float, over: Tensor | None, vocab_size: int) -> Tensor | float:
    """The part of the share that each token gets."""
    return share / vocab_size if over is None else share * over


@cache
def _compiled_slope() -> Callable[[Tensor, Tensor, float, Tensor | None], tuple[Tensor, Tensor]]:
    return torch.compile(_loss_and_slope)
