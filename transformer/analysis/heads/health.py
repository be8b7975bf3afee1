"""Measures every attention head on some pairs: how even and how sharp its weights are, what it adds to its block."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.data.batches import make_batch
from transformer.model.attention import MultiHeadAttention
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Recorder, Recording, Site, Stack, Sublayer
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training.evaluation import fitting

ONE_HOT = 0.99
"""A row whose largest weight is above this looks at one key alone."""
FEWEST_KEYS = 3
"""Rows that may choose among fewer keys say nothing of how a head chooses."""
MOST_PAIRS = 16


@dataclass(frozen=True)
class HeadHealth:
    """One head over the rows of several sentences that had at least FEWEST_KEYS keys to choose from."""

    stack: Stack
    layer: int
    sublayer: Sublayer
    head: int
    evenness: float
    """Entropy of the weights over the largest possible one, averaged: 1 = the same weight on every key."""
    one_hot: float
    """Share of rows that look at one key alone."""
    strength: float
    """Size (root mean square) of what the head adds to its block's output, over that of the whole output."""
    variation: float
    """Share of its squared size that changes from token to token: 0 = it adds the same vector everywhere."""
    rows: int

    @property
    def name(self) -> str:
        """The head in words, as in "head 2 of decoder layer 0 (cross)"."""
        return f"head {self.head} of {self.stack} layer {self.layer} ({self.sublayer})"


@torch.no_grad()
def head_health(model: Seq2Seq, pairs: Sequence[Pair], tokenizer: Tokenizer) -> tuple[HeadHealth, ...]:
    """Measures every head in one teacher-forced pass over the first pairs that fit; empty where none fits."""
    chosen = fitting(pairs, tokenizer, model.config.max_length, MOST_PAIRS)
    if not chosen:
        return ()
    batch = make_batch([(tokenizer.encode(pair.source), tokenizer.encode(pair.target)) for pair in chosen])
    recorder = Recorder(lambda site: site.tensor in ("weights", "mask", "heads", "output") and site.sublayer != "ffn")
    model(batch.source, batch.target_in, batch.source_mask, batch.target_mask, tap=recorder)
    real = {"encoder": batch.source_mask, "decoder": batch.target_mask}
    sites = [site for site in model.sites() if site.tensor == "weights"]
    return tuple(found for site in sites for found in _sublayer(model, recorder.recording, site, real[site.stack]))


def _sublayer(model: Seq2Seq, recording: Recording, site: Site, real: Bool[Tensor, "batch query"]) -> list[HeadHealth]:
    stack, layer, sublayer = site.stack, site.layer, site.sublayer
    assert layer is not None and sublayer is not None, "weights belong to a block"
    weights, mask, heads, output = (
        recording[Site(stack, layer, sublayer, name)] for name in ("weights", "mask", "heads", "output")
    )
    keys = mask.expand(-1, 1, weights.size(2), -1)[:, 0].sum(dim=-1)  # -> [batch query]
    chosen = real & (keys >= FEWEST_KEYS)
    if not chosen.any():
        return []
    rows = weights.transpose(1, 2)[chosen].double()  # -> [row head key]
    even = torch.special.entr(rows).sum(dim=-1) / keys[chosen].double().log()[:, None]
    added = _added(model, site, heads).transpose(1, 2)[real].double()  # -> [row head d_model]
    squares = added.square().sum(dim=-1).mean(dim=0)
    whole = output[real].double().square().sum(dim=-1).mean().clamp(min=1e-30)
    still = added.mean(dim=0).square().sum(dim=-1) / squares.clamp(min=1e-30)
    return [
        HeadHealth(
            stack=stack,
            layer=layer,
            sublayer=sublayer,
            head=head,
            evenness=float(even[:, head].mean()),
            one_hot=float((rows[:, head].amax(dim=-1) > ONE_HOT).double().mean()),
            strength=float((squares[head] / whole).sqrt()),
            variation=max(0.0, 1 - float(still[head])),
            rows=len(rows),
        )
        for head in range(rows.size(1))
    ]


def _added(
    model: Seq2Seq, site: Site, heads: Float[Tensor, "batch head query d_head"]
) -> Float[Tensor, "batch head query d_model"]:
    """Returns each head's part of the block's output: its context times its rows of W_O.

    The one head of a recurrent or convolutional model has no W_O: its context is the output.
    """
    if not isinstance(model, Transformer):
        return heads
    attention = model.get_submodule(f"{site.stack}.layers.{site.layer}.{site.sublayer}_attention")
    assert isinstance(attention, MultiHeadAttention)
    w_o = attention.output.weight.unflatten(1, (attention.n_heads, -1))  # -> [d_model head d_head]
    return torch.einsum("bhqd,mhd->bhqm", heads, w_o)
