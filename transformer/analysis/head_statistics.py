"""What each head does on average over many pairs: its mean output, and how widely it looks. One teacher-forced pass a
batch, real positions only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.data import pair_batches
from transformer.model import Transformer
from transformer.pairs import Pair
from transformer.taps import Recorder, Site
from transformer.tokenizer import Tokenizer


@dataclass(frozen=True)
class BlockStatistics:
    """The heads of one attention block over a set of pairs."""

    block: str
    """As in `decoder.1.cross`."""
    mean: Float[Tensor, "head d_head"]
    """Each head's mean context, before W_O: what it says whatever the sentence."""
    entropy: Float[Tensor, "head"]
    """Mean entropy of the rows of weights in nats: 0 looks at one token, ln(keys) at all alike."""
    queries: int
    """Real positions that went in."""


@torch.no_grad()
def head_statistics(
    model: Transformer, pairs: Sequence[Pair], tokenizer: Tokenizer, *, batch_tokens: int = 2_048
) -> tuple[BlockStatistics, ...]:
    """The statistics of every attention block over these pairs; ValueError for a pair that does not fit the model."""
    sums: dict[str, tuple[Tensor, Tensor, int]] = {}
    for _, batch in pair_batches(pairs, tokenizer, batch_tokens, max_length=model.config.max_length):
        recorder = Recorder(_wanted)
        model(batch.source, batch.target_in, batch.source_mask, batch.target_mask, tap=recorder)
        for site, heads in recorder.recording.items():
            if site.tensor == "heads":
                block = f"{site.stack}.{site.layer}.{site.block}"
                weights = recorder.recording[Site(site.stack, site.layer, site.block, "weights")]
                real = batch.source_mask if site.stack == "encoder" else batch.target_mask
                found = (*_summed(heads, weights, real), int(real.sum()))
                sums[block] = tuple(a + b for a, b in zip(sums.get(block, (0, 0, 0)), found, strict=True))
    return tuple(BlockStatistics(block, a / n, b / n, n) for block, (a, b, n) in sums.items())


def _summed(
    heads: Float[Tensor, "batch head query d_head"],
    weights: Float[Tensor, "batch head query key"],
    real: Bool[Tensor, "batch query"],
) -> tuple[Float[Tensor, "head d_head"], Float[Tensor, "head"]]:
    """Contexts and entropies summed over the real queries, in float64."""
    entropy = torch.special.entr(weights.double()).sum(dim=-1)
    kept = real[:, None, :].double()
    return (heads.double() * kept[..., None]).sum(dim=(0, 2)), (entropy * kept).sum(dim=(0, 2))


def _wanted(site: Site) -> bool:
    return site.tensor in ("heads", "weights")
