"""Pairs of sentences to batches of token ids: checked, padded, bucketed by length, and resumable.

Everything here runs on the CPU, and nothing reaches a model unchecked: an empty or overlong sentence and an id outside
the vocabulary are refused here, with both numbers. Not here: where pairs come from (corpora.py).
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer.text.pairs import Pair, clean_text
from transformer.text.token_ids import check_ids, check_source
from transformer.text.tokenizer import BOS, EOS, PAD, Tokenizer

POOL_SIZE = 2_000
"""Pairs, at least, that are encoded and sorted by length together."""

Example = tuple[Sequence[int], Sequence[int]]
"""Source and target ids without special tokens."""


@dataclass(frozen=True)
class Batch:
    """Padded ids of some pairs, the target shifted: at each position `target_in` is read, `target_out` predicted.

    The source ends with eos; `target_in` begins with bos and `target_out` ends with eos. True in a mask = a real token;
    `target_mask` holds for both targets.
    """

    source: Int[Tensor, "batch source"]
    target_in: Int[Tensor, "batch target"]
    target_out: Int[Tensor, "batch target"]
    source_mask: Bool[Tensor, "batch source"]
    target_mask: Bool[Tensor, "batch target"]
    n_tokens: int
    """Real target tokens, eos included: what a loss is normalised by."""

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "Batch":
        """The same batch on a device. `non_blocking` pins the memory first, without which a copy to CUDA waits."""
        tensors = (self.source, self.target_in, self.target_out, self.source_mask, self.target_mask)
        if non_blocking:
            return Batch(*(move_without_waiting(tensor, device) for tensor in tensors), self.n_tokens)
        return Batch(*(tensor.to(device) for tensor in tensors), self.n_tokens)


def move_without_waiting(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device. Its memory is pinned first on the way to CUDA, where the copy would else wait for all
    that the device still has to do."""
    if torch.device(device).type == "cuda" and not tensor.is_cuda:
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


@dataclass(frozen=True)
class Position:
    """The place of a stream: before batch `index` of pool `pool` in epoch `epoch`. Whole numbers, fit for JSON."""

    epoch: int = 0
    pool: int = 0
    index: int = 0
    skipped: int = 0
    """Pairs left out so far because a side is too long or empty, each once an epoch."""


@dataclass(frozen=True)
class BatchStream:
    """Endless training batches, each with the position after it, from where a new stream goes on bit-identically.

    Each epoch orders all pairs anew, from (seed, epoch). Each `pool_size` of them in that order form a pool: encoded
    when it is reached, sorted by length and cut into batches of at most `batch_tokens` tokens (rows times the longest
    side, padding and special tokens included; a pair longer than that is a batch of its own), which come in random
    order.
    A pair with a side that is empty, or longer than `max_length` tokens with its bos or eos, is skipped and counted.
    """

    pairs: Sequence[Pair]
    tokenizer: Tokenizer
    batch_tokens: int
    seed: int
    max_length: int
    position: Position = Position()
    width_multiple: int = 1
    """Each side is padded to a multiple of it: products in bfloat16 are prepared anew for every new shape."""
    _examples: dict[int, Example] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The pairs met up to now, by their index: on a GPU, cutting them anew in each epoch takes longer than the step."""

    def __iter__(self) -> Iterator[tuple[Batch, Position]]:
        """Raises ValueError for a position that these pairs do not have, and where no pair fits at all."""
        n_pools = -(-len(self.pairs) // self.pool_size)
        at, barren = self.position, 0
        if at.pool >= n_pools:
            raise ValueError(f"pool {at.pool} does not exist: {len(self.pairs)} pairs make {n_pools} pools")
        order = self._order(at.epoch)
        while True:
            batches, skipped = self._batches(order, at)
            skipped = at.skipped + (skipped if at.index == 0 else 0)
            is_last_pool = at.pool + 1 == n_pools
            next_pool = Position(at.epoch + is_last_pool, 0 if is_last_pool else at.pool + 1, 0, skipped)
            for index in range(at.index, len(batches)):
                is_last = index + 1 == len(batches)
                yield (
                    make_batch(batches[index], width_multiple=self.width_multiple),
                    next_pool if is_last else Position(at.epoch, at.pool, index + 1, skipped),
                )
            barren = 0 if batches else barren + 1
            if barren == n_pools:
                raise ValueError(
                    f"none of the {len(self.pairs)} pairs fits into max_length ({self.max_length}) tokens a side: "
                    "take a larger max_length or another corpus"
                )
            at = next_pool
            order = self._order(at.epoch) if is_last_pool else order

    def target_counts(self, vocab_size: int) -> Int[np.ndarray, " vocab"]:
        """Counts how often each token is to be predicted in one epoch, eos included."""
        fitting = [example for example in map(self._example, range(len(self.pairs))) if _fits(example, self.max_length)]
        targets = np.fromiter(chain.from_iterable(target for _, target in fitting), dtype=np.int64)
        counts = np.bincount(targets, minlength=vocab_size)
        counts[EOS] += len(fitting)
        return counts

    @property
    def pool_size(self) -> int:
        """Pairs that are encoded and sorted together: at least POOL_SIZE, and enough for a few dozen batches."""
        return max(POOL_SIZE, 4 * self.batch_tokens)

    def _order(self, epoch: int) -> np.ndarray:
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.pairs))

    def _batches(self, order: np.ndarray, at: Position) -> tuple[list[list[Example]], int]:
        """The batches of the pool at this position, in their order, and how many of its pairs are left out."""
        pool = order[at.pool * self.pool_size : (at.pool + 1) * self.pool_size].tolist()
        encoded = [self._example(index) for index in pool]
        fitting = [example for example in encoded if _fits(example, self.max_length)]
        fitting.sort(key=_longest, reverse=True)
        batches = list(_cut(fitting, self.batch_tokens, self.width_multiple))
        shuffled = np.random.default_rng([self.seed, at.epoch, at.pool]).permutation(len(batches))
        return [batches[i] for i in shuffled], len(pool) - len(fitting)

    def _example(self, index: int) -> Example:
        if index not in self._examples:
            source, target = _encode(self.pairs[index], self.tokenizer)
            self._examples[index] = array("i", source), array("i", target)  # a fifth of a list's memory
        return self._examples[index]


def pair_batches(
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    batch_tokens: int,
    *,
    max_length: int,
    vocab_size: int | None = None,
) -> Iterator[tuple[list[int], Batch]]:
    """Every pair once, as (indices of its pairs, batch), sorted by length: what an evaluation goes through.

    ValueError for a pair that is empty or too long, and for an id that `vocab_size` has no room for.
    """
    encoded = [_encode(pair, tokenizer) for pair in pairs]
    for number, example in enumerate(encoded, start=1):
        for side, ids in zip(("source", "target"), example, strict=True):
            check_source(ids, max_length=max_length, name=f"the {side} of pair {number}")
    rows = sorted(range(len(pairs)), key=lambda row: _longest(encoded[row]), reverse=True)
    start = 0
    for batch in _cut([encoded[row] for row in rows], batch_tokens):
        yield rows[start : start + len(batch)], make_batch(batch, vocab_size=vocab_size)
        start += len(batch)


def fits(pair: Pair, tokenizer: Tokenizer, max_length: int) -> bool:
    """Tells whether neither side of a pair is empty or longer than `max_length` tokens, bos or eos included."""
    return _fits(_encode(pair, tokenizer), max_length)


def encode_sources(
    texts: Sequence[str], tokenizer: Tokenizer, *, max_length: int, vocab_size: int | None = None
) -> tuple[Int[Tensor, "batch source"], Bool[Tensor, "batch source"]]:
    """The padded ids of these sentences, each cleaned and with its eos, and their mask (True = a real token).

    ValueError where there is none, or one is empty or longer than `max_length` tokens (eos included), or holds an id
    that `vocab_size` has no room for.
    """
    if not texts:
        raise ValueError("there is no sentence to encode")
    rows = [tokenizer.encode(clean_text(text)) for text in texts]
    for number, ids in enumerate(rows, start=1):
        name = "the sentence" if len(texts) == 1 else f"sentence {number}"
        check_source(ids, max_length=max_length, vocab_size=vocab_size, name=name)
    return _padded([[*ids, EOS] for ids in rows])


def make_batch(examples: Sequence[Example], vocab_size: int | None = None, *, width_multiple: int = 1) -> Batch:
    """The batch of these (source ids, target ids), given without special tokens, padded to a multiple of columns.

    ValueError for no examples, and for an id that `vocab_size` has no room for.
    """
    if not examples:
        raise ValueError("a batch needs at least one pair")
    check_ids((token for example in examples for ids in example for token in ids), vocab_size)
    source, source_mask = _padded([[*ids, EOS] for ids, _ in examples], width_multiple)
    target_in, target_mask = _padded([[BOS, *ids] for _, ids in examples], width_multiple)
    target_out, _ = _padded([[*ids, EOS] for _, ids in examples], width_multiple)
    return Batch(source, target_in, target_out, source_mask, target_mask, sum(len(ids) + 1 for _, ids in examples))


def _encode(pair: Pair, tokenizer: Tokenizer) -> Example:
    return tokenizer.encode(pair.source), tokenizer.encode_target(pair.target)


def _longest(example: Example) -> int:
    """Tokens of the longer side, its bos or eos included."""
    return 1 + max(len(ids) for ids in example)


def _fits(example: Example, max_length: int) -> bool:
    return all(0 < len(ids) < max_length for ids in example)


def _cut(examples: Sequence[Example], batch_tokens: int, width_multiple: int = 1) -> Iterator[list[Example]]:
    """Neighbours, the longest first, grouped so that rows times the longest side stay within `batch_tokens`.

    So each width has one number of rows, but for the last group.
    """
    start = 0
    while start < len(examples):
        rows = max(1, batch_tokens // _rounded(_longest(examples[start]), width_multiple))
        yield list(examples[start : start + rows])
        start += rows


def _padded(
    rows: Sequence[Sequence[int]], width_multiple: int = 1
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """Rows filled with PAD to the longest, and the mask of what was there."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    width = _rounded(int(lengths.max()), width_multiple)
    real = np.arange(width) < lengths[:, None]  # [length] < [batch 1] -> [batch length]
    ids = np.full(real.shape, PAD, dtype=np.int64)
    ids[real] = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))  # a list is slow
    return torch.from_numpy(ids), torch.from_numpy(real)


def _rounded(width: int, multiple: int) -> int:
    return -(-width // multiple) * multiple
