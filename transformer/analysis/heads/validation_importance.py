"""The importance of each head over many pairs: the loss and the exact matches without it, with intervals.

The interval is the percentile bootstrap (Efron and Tibshirani, 1993, chapter 13) over pairs, each drawn with all its
heads' results, so that differences are paired (as translation systems are compared in Koehn, 2004).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.analysis.heads.ablations import Means, rows_off
from transformer.analysis.heads.addresses import HeadAt, Tell, heads_of
from transformer.data.batches import Batch, pair_batches
from transformer.model.taps import Tap
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import UNK, Tokenizer

ImportanceMeasure = Literal["loss", "exact_match"]
RESAMPLES = 2_000
LEVEL = 0.95
SEED = 0
_DRAWN_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Change:
    """A difference with its bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """True where the interval leaves out 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Importance:
    """One head removed."""

    at: HeadAt
    loss: Change
    """Without the head minus with it, in nats per target token, not smoothed: positive where the head helps."""
    exact_match: Change
    """The same of the share of pairs whose reference is written token for token."""


@dataclass(frozen=True)
class ValidationImportance:
    """Every head removed in turn, over the same pairs."""

    heads: tuple[Importance, ...]
    """The heads in the order of the pass."""
    loss: float
    """The loss with all heads."""
    exact_match: float
    n_pairs: int
    n_tokens: int


@torch.no_grad()
def validation_importance(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    *,
    batch_tokens: int = 2_048,
    means: Means | None = None,
    tell: Tell | None = None,
) -> ValidationImportance:
    """Measures loss and exact match with all heads and without each: at zero, or at these `means`.

    ValueError for no pairs, or one that does not fit.

    Both are read off one teacher-forced pass: greedy decoding writes the reference exactly where each of its tokens is
    the most probable one after the tokens before it. A reference with a word that the model cannot write is no match.
    """
    if not pairs:
        raise ValueError("there are no pairs to measure on")
    if not model.config.causal_mask:
        raise ValueError(
            "this model has no causal mask: in a teacher-forced pass it sees the words that it has to predict, so "
            "neither loss nor exact match can be measured there"
        )
    heads = heads_of(model)
    losses, matches = (np.zeros((1 + len(heads), len(pairs))) for _ in range(2))
    lengths, done = np.zeros(len(pairs)), 0
    for rows, batch in pair_batches(pairs, tokenizer, batch_tokens, max_length=model.config.max_length):
        lengths[rows] = batch.target_mask.sum(dim=1).numpy()
        memory = model.encode(batch.source, batch.source_mask)
        for ablation, at in enumerate((None, *heads)):
            found = _scored(model, batch, at, memory, means)
            losses[ablation, rows], matches[ablation, rows] = (values.numpy() for values in found)
            if tell is not None:
                tell((done + len(rows) * (ablation + 1) / (1 + len(heads))) / len(pairs))
        done += len(rows)
    loss, match = losses[0].sum() / lengths.sum(), matches[0].mean()
    moved = losses[1:] - losses[0], matches[1:] - matches[0]
    changes = zip(heads, intervals(moved[0], lengths), intervals(moved[1], np.ones(len(pairs))), strict=True)
    return ValidationImportance(
        heads=tuple(Importance(*found) for found in changes),
        loss=float(loss),
        exact_match=float(match),
        n_pairs=len(pairs),
        n_tokens=int(lengths.sum()),
    )


def resamples(n: int) -> Iterator[Int[ndarray, "sample item"]]:
    """Yields the number of times that each item is drawn in each bootstrap sample, the same at every call.

    Samples come some at a time: those of many items would fill the memory.
    """
    random, at_once = np.random.default_rng(SEED), max(1, _DRAWN_AT_ONCE // n)
    for done in range(0, RESAMPLES, at_once):
        yield random.multinomial(n, np.full(n, 1 / n), size=min(at_once, RESAMPLES - done))


def intervals(moved: Float[ndarray, "head item"], sizes: Float[ndarray, " item"]) -> tuple[Change, ...]:
    """Returns the sum of each row over the sum of the sizes, with its percentile interval over the samples."""
    values = moved.sum(axis=1) / sizes.sum()
    # Each part: [sample item] @ [item head] -> [sample head]
    samples = np.concatenate([(drawn @ moved.T) / (drawn @ sizes)[:, None] for drawn in resamples(len(sizes))])
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return tuple(Change(*map(float, found)) for found in zip(values, low, high, strict=True))


def _scored(
    model: Transformer,
    batch: Batch,
    at: HeadAt | None,
    memory: Float[Tensor, "batch source d_model"],
    means: Means | None,
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """Returns the summed loss of each pair, and 1 where its reference would be written."""
    sets = [() if at is None else (at,)] * len(batch.source)
    off: Tap | None = None
    if at is not None:
        off = rows_off(model, sets, at.stack, means)
        memory = memory if at.stack == "decoder" else model.encode(batch.source, batch.source_mask, tap=off)
    tap = off if at is not None and at.stack == "decoder" else None
    states = model.decode(batch.target_in, memory, batch.source_mask, batch.target_mask, tap=tap)
    logits = model.project(states, tap=tap)
    chosen = logits.log_softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0].double()
    logits[..., model.config.pad_id] = -torch.inf  # is never written
    right = (logits.argmax(dim=-1) == batch.target_out) & (batch.target_out != UNK)
    return -(chosen * batch.target_mask).sum(dim=1), (right | ~batch.target_mask).all(dim=1).double()
