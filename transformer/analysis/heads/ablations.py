"""The same sentence without many sets of heads at once: each set is a row of one batch, with its own heads at zero, or
at their means over validation pairs.

Such a pass tells what greedy decoding writes: it follows an output as long as each of its tokens is the most probable
one after the tokens before it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.heads.addresses import HeadAt
from transformer.model.taps import Site, Stack, Tap, chain
from transformer.model.transformer import Transformer

Means = Mapping[str, Float[Tensor, "head d_head"]]
"""The mean context of each head, by block as in `decoder.1.cross` (statistics.py)."""
TOKENS_A_PASS, NUMBERS_A_PASS = 4_096, 8_000_000
"""Source and target positions that go through the model together, and log-probabilities that come out: more are no
faster on a CPU, and take memory."""


@dataclass(frozen=True)
class RowsOff:
    """A tap that sets some heads' context to zero or to their means, before W_O, in some rows of a batch each."""

    kept: Mapping[Site, Bool[Tensor, "row head"]]
    means: Means | None = None

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        kept = self.kept.get(site)
        if kept is None:
            return tensor
        left = tensor * kept[:, :, None, None]
        if self.means is None:
            return left
        mean = self.means[f"{site.stack}.{site.layer}.{site.sublayer}"].to(tensor)
        return left + (mean * ~kept[..., None])[:, :, None]


@torch.no_grad()
def forced_under(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    sets: Sequence[Collection[HeadAt]],
    *,
    tap: Tap | None = None,
    memory: Float[Tensor, "1 source d_model"] | None = None,
    means: Means | None = None,
) -> Float[Tensor, "set target vocab"]:
    """Returns log-probabilities at each position of `target`, given the tokens before, without each set of heads.

    `tap` applies in all rows, before the heads are out. Where it lets earlier states depend on later tokens, each
    position comes from a pass over what stands before it, as in decoding. `memory` spares the encoder's pass where no
    set holds a head of the encoder. With `means` the heads of a set are at these, else at zero.
    """
    ids = torch.tensor([source])
    bos = torch.tensor([[model.config.bos_id, *target[:-1]]]).expand(len(sets), -1)
    memory = _memory(model, ids, sets, tap, means) if memory is None else memory.expand(len(sets), -1, -1)
    mask = torch.ones(len(sets), ids.size(1), dtype=torch.bool)
    off = chain(tap, rows_off(model, sets, "decoder", means))
    if not model.needs_recomputation(tap):
        return model.project(model.decode(bos, memory, mask, tap=off), tap=off).log_softmax(dim=-1)
    lengths = range(1, bos.size(1) + 1)
    last = [model.decode(bos[:, :length], memory, mask, tap=off)[:, -1] for length in lengths]
    return torch.stack([model.project(state, tap=off).log_softmax(dim=-1) for state in last], dim=1)


def in_batches(
    sets: Sequence[tuple[HeadAt, ...]], n_source: int, n_target: int, vocab_size: int
) -> Iterator[Sequence[tuple[HeadAt, ...]]]:
    """Yields the sets in parts small enough for one pass each, over sentences of so many tokens."""
    size = max(1, min(TOKENS_A_PASS // (n_source + n_target), NUMBERS_A_PASS // (n_target * vocab_size)))
    for start in range(0, len(sets), size):
        yield sets[start : start + size]


def rows_off(
    model: Transformer, sets: Sequence[Collection[HeadAt]], stack: Stack, means: Means | None = None
) -> RowsOff:
    """Returns the tap under which row i lacks the heads of set i in this stack."""
    kept: dict[Site, Tensor] = {}
    for row, heads in enumerate(sets):
        for at in heads:
            if at.stack == stack:
                site = Site(at.stack, at.layer, at.sublayer, "heads")
                everything = torch.ones(len(sets), model.config.n_heads, dtype=torch.bool)
                kept.setdefault(site, everything)[row, at.head] = False
    return RowsOff(kept, means)


def _memory(
    model: Transformer,
    ids: Int[Tensor, "1 source"],
    sets: Sequence[Collection[HeadAt]],
    tap: Tap | None,
    means: Means | None,
) -> Float[Tensor, "set source d_model"]:
    """Returns the encoder's memory for each set; sets with the same heads of the encoder share one pass."""
    parts = [frozenset(at for at in heads if at.stack == "encoder") for heads in sets]
    distinct = list(dict.fromkeys(parts))
    off = rows_off(model, distinct, "encoder", means)
    found = model.encode(ids.expand(len(distinct), -1), tap=chain(tap, off))
    return found[[distinct.index(part) for part in parts]]
