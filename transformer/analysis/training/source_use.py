"""Measures whether a model's output depends on its source: what exchanging the sources costs, and whether the
encoder still tells tokens apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from transformer.data.batches import make_batch
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training.evaluation import fitting, summed_loss

MOST_PAIRS = 64


@dataclass(frozen=True)
class SourceUse:
    """The use that a model makes of its source, on some pairs."""

    loss: float
    """Cross-entropy in nats per target token, each target with its own source."""
    exchanged: float
    """The same with the source of another pair."""
    cosine: float
    """The mean cosine between the encoder's vectors of two tokens of one sentence: 1 where all are alike."""
    n_pairs: int

    @property
    def rise(self) -> float:
        """The increase of the loss when sources are exchanged, in nats per token."""
        return self.exchanged - self.loss


@torch.no_grad()
def source_use(model: Seq2Seq, pairs: Sequence[Pair], tokenizer: Tokenizer) -> SourceUse | None:
    """Measures the model, in evaluation mode, on the first pairs that fit; None where no two sources differ.

    Each target is scored once with its own source and once with that of the next pair, in the batch's order.
    """
    chosen = fitting(pairs, tokenizer, model.config.max_length, MOST_PAIRS)
    others = [*chosen[1:], *chosen[:1]]
    kept = [(own, other) for own, other in zip(chosen, others, strict=True) if own.source != other.source]
    if not kept:
        return None
    device = next(model.parameters()).device
    sources = [[tokenizer.encode(pair[which].source) for pair in kept] for which in (0, 1)]
    targets = [tokenizer.encode_target(own.target) for own, _ in kept]
    batches = [make_batch([*zip(side, targets, strict=True)]) for side in sources]
    loss, exchanged = (summed_loss(model, batch, device).item() / batch.n_tokens for batch in batches)
    source, mask = batches[0].source.to(device), batches[0].source_mask.to(device)
    return SourceUse(loss, exchanged, mean_cosine(_states(model, source, mask), mask), len(kept))


def _states(
    model: Seq2Seq, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
) -> Float[Tensor, "batch source d_model"]:
    """Returns the encoder's vector of each source token: what `encode` returns of a Transformer alone."""
    if isinstance(model, Transformer):
        return model.encode(source, mask)
    last = [site for site in model.sites() if site.stack == "encoder" and site.tensor == "output"][-1]
    recorder = Recorder(lambda site: site == last)
    model.encode(source, mask, tap=recorder)
    return recorder.recording[last]


def mean_cosine(states: Float[Tensor, "batch source d_model"], mask: Bool[Tensor, "batch source"]) -> float:
    """Returns the mean cosine over all pairs of different real tokens of a sentence (mask: True = a real token)."""
    unit = normalize(states.double(), dim=-1) * mask[..., None]
    both = unit.sum(dim=1).square().sum(dim=-1)  # of all pairs, each token with itself among them
    n = mask.sum(dim=1)
    return ((both - n).sum() / (n * (n - 1)).sum().clamp(min=1)).item()
