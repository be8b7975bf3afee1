"""Losses of a reference in two ways: teacher-forced on its own words, and free-running on what the model wrote.

In training a decoder only ever sees right prefixes; in use it sees its own. The cost of that is its exposure bias
(Ranzato et al. 2016): the loss of a reference token after the model's own words minus its loss after the right ones.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.analysis.positions.lengths import Z95
from transformer.data.batches import Batch, fits, pair_batches
from transformer.decoding.greedy import greedy, log_probs_on_prefixes
from transformer.interventions import Intervention, compile_interventions
from transformer.model.taps import Tap
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer

MIN_COUNT = 5
"""The number of pairs that a position needs; others are left out."""
N_PAIRS = 300
"""The number of validation pairs over which exposure bias is measured: the first that fit."""


@dataclass(frozen=True)
class ReferenceLosses:
    """One reference, position by position."""

    reference: tuple[int, ...]
    """The reference's ids, its eos included."""
    written: tuple[int, ...]
    """The model's own output, its eos included where it has one."""
    likeliest: tuple[int, ...]
    """The most probable token at each position, teacher-forced; never padding, which is not written."""
    forced_loss: Float[ndarray, " position"]
    """Loss of each reference token in nats, after the reference's tokens before it."""
    free_loss: Float[ndarray, " position"]
    """The same after the model's own tokens; NaN where it had ended before."""

    @property
    def divergence(self) -> int | None:
        """The first position at which something else was written; None where the output is the reference."""
        pairs = enumerate(zip(self.reference, self.written, strict=False))
        found = next((i for i, (right, own) in pairs if right != own), None)
        if found is None and len(self.written) < len(self.reference):
            return len(self.written)
        return found


@dataclass(frozen=True)
class AtPosition:
    """One target position over many sentences."""

    position: int
    """0 for the first token after bos."""
    count: int
    """The number of sentences whose reference has this position."""
    forced_right: int
    """The number of sentences in which the most probable token after the right words is the right one; padding, which
    is not written, is left out, as it is in free running."""
    free_right: int
    """The number of sentences in which the token that the model wrote here by itself is the right one."""
    forced_loss: float
    """The mean over the `going` sentences, as is `bias`."""
    bias: float
    """Mean of the loss after the model's own words minus that after the right ones, in nats."""
    bias_error: float
    """Half the 95 % interval of that mean (normal, over sentences); NaN for fewer than two."""
    going: int
    """The number of sentences in which the model's own output had not ended before this position."""


def reference_losses(
    model: Transformer, source: Sequence[int], reference: Sequence[int], switches: Sequence[Intervention] = ()
) -> ReferenceLosses:
    """Measures the losses of a reference (ids, its eos included); ValueError where the model cannot write as much."""
    longest = model.config.max_length
    if len(reference) > longest:
        raise ValueError(
            f"the reference has {len(reference)} tokens, its end mark included, "
            f"where the model writes at most {longest}"
        )
    tap = compile_interventions(switches, model)
    ids, target = torch.tensor([source]), torch.tensor([reference])
    steps = list(greedy(model, ids, max_length=longest, tap=tap))
    free = torch.cat([step.log_probs for step in steps])[: len(reference)]
    forced = log_probs_on_prefixes(model, ids, target, tap=tap)[0]
    lost = torch.full((len(reference),), math.nan, dtype=forced.dtype)
    lost[: len(free)] = -free.gather(1, target[0, : len(free), None])[:, 0]
    return ReferenceLosses(
        tuple(reference),
        tuple(int(step.tokens[0]) for step in steps),
        tuple(_likeliest(forced, model.config.pad_id).tolist()),
        (-forced.gather(1, target[0, :, None])[:, 0]).numpy(),
        lost.numpy(),
    )


@dataclass(frozen=True)
class Exposure:
    """Exposure bias over validation pairs."""

    n_pairs: int
    switches: tuple[Intervention, ...]
    positions: tuple[AtPosition, ...]
    """The positions that at least MIN_COUNT pairs have."""


def readable_pairs(
    pairs: Sequence[Pair], tokenizer: Tokenizer, max_length: int, most: int = N_PAIRS
) -> tuple[Pair, ...]:
    """Returns the first `most` pairs that fit a model's length, looked for among the first 2 * `most`."""
    return tuple(pair for pair in pairs[: 2 * most] if fits(pair, tokenizer, max_length))[:most]


def exposure_bias(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    switches: Sequence[Intervention] = (),
    *,
    batch_tokens: int = 512,
    tell: Callable[[float], object] | None = None,
) -> Exposure:
    """Measures exposure bias at every position that enough pairs have; `tell` is given the share of them read.

    ValueError for no pairs, or one that is empty or too long for the model.
    """
    if not pairs:
        raise ValueError("there are no pairs to read")
    rows: list[tuple[ndarray, ndarray, ndarray, ndarray]] = []
    tap = compile_interventions(switches, model)
    for _, batch in pair_batches(pairs, tokenizer, batch_tokens, max_length=model.config.max_length):
        rows += _measured(model, batch, tap)
        if tell is not None:
            tell(len(rows) / len(pairs))
    return Exposure(len(pairs), tuple(switches), _by_position(rows))


def _measured(model: Transformer, batch: Batch, tap: Tap | None) -> list[tuple[ndarray, ndarray, ndarray, ndarray]]:
    """Returns each pair's losses and hits, teacher-forced and free-running; NaN past the end of the own output."""
    target, real = batch.target_out, batch.target_mask
    forced = log_probs_on_prefixes(model, batch.source, target, batch.source_mask, tap=tap)
    losses = torch.full(target.shape, math.nan, dtype=forced.dtype)
    hits = torch.zeros_like(real)
    ended = torch.zeros(len(target), dtype=torch.bool)
    for step in greedy(model, batch.source, batch.source_mask, max_length=target.size(1), tap=tap):
        right = target[:, step.index]
        lost = -step.log_probs.gather(1, right[:, None])[:, 0]
        losses[:, step.index] = lost.masked_fill(ended, math.nan)
        hits[:, step.index] = (step.tokens == right) & ~ended
        ended = step.finished
    parts = (
        -forced.gather(2, target[:, :, None])[:, :, 0],
        _likeliest(forced, model.config.pad_id) == target,
        losses,
        hits,
    )
    return [_row(parts, row, int(real[row].sum())) for row in range(len(target))]


def _likeliest(log_probs: Float[Tensor, "*any vocab"], pad_id: int) -> Int[Tensor, " *any"]:
    """Returns the most probable tokens that can be written."""
    writable = log_probs.clone()
    writable[..., pad_id] = -torch.inf
    return writable.argmax(dim=-1)


def _row(parts: tuple[Tensor, ...], row: int, length: int) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    forced_loss, forced_hit, free_loss, free_hit = (part[row, :length].numpy() for part in parts)
    return forced_loss, forced_hit, free_loss, free_hit


def _by_position(rows: Sequence[tuple[ndarray, ndarray, ndarray, ndarray]]) -> tuple[AtPosition, ...]:
    longest = max(len(forced) for forced, *_ in rows)
    found = (_at(position, rows) for position in range(longest))
    return tuple(at for at in found if at is not None and at.count >= MIN_COUNT)


def _at(position: int, rows: Sequence[tuple[ndarray, ndarray, ndarray, ndarray]]) -> AtPosition | None:
    here = [row for row in rows if len(row[0]) > position]
    both = np.array([(row[0][position], row[2][position]) for row in here], dtype=np.float64)
    going = both[~np.isnan(both[:, 1])]
    if not len(going):
        return None
    bias = going[:, 1] - going[:, 0]
    error = Z95 * bias.std(ddof=1) / math.sqrt(len(bias)) if len(bias) > 1 else math.nan
    return AtPosition(
        position=position,
        count=len(here),
        forced_right=sum(bool(row[1][position]) for row in here),
        free_right=sum(bool(row[3][position]) for row in here),
        forced_loss=float(going[:, 0].mean()),
        bias=float(bias.mean()),
        bias_error=float(error),
        going=len(going),
    )
