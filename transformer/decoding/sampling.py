"""Sampling: each token is drawn from the model's distribution, sharpened, flattened or cut as asked."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.config import DecodeConfig
from transformer.decoding.greedy import FREE, Constraints, Step, token_by_token
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site, Tap


def sample(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    max_length: int,
    seed: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    constraints: Constraints = FREE,
    tap: Tap | None = None,
    record: Callable[[Site], bool] | None = None,
    cache: bool = True,
) -> Iterator[Step]:
    """Yields a drawn token of each row until all have written eos, or max_length tokens.

    The same seed, batch and device draw the same tokens. For several samples of a sentence, repeat its row. A step's
    `log_probs` stay the model's. Otherwise as `greedy`; ValueError for settings that leave no distribution.
    """
    # Refuses what no distribution can be made of.
    DecodeConfig(method="sample", temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    generator = torch.Generator(source.device).manual_seed(seed)

    def choose(allowed: Tensor) -> Tensor:
        drawn_from = reshaped(allowed, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
        return torch.multinomial(drawn_from.exp(), 1, generator=generator)[:, 0]

    return token_by_token(
        model,
        source,
        source_mask,
        choose,
        max_length=max_length,
        constraints=constraints,
        tap=tap,
        record=record,
        cache=cache,
    )


def reshaped(
    scores: Float[Tensor, "batch vocab"],
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> Float[Tensor, "batch vocab"]:
    """The log-probabilities of the distribution that a draw with these settings is from; -inf = never drawn.

    `scores` are logits or log-probabilities. In this order: temperature, the k most probable, the fewest that together
    have probability p (of what is left), and those with at least min_p of the largest probability. Equal tokens go by
    their id; one token always stays. The settings are taken to be such as a DecodeConfig allows.
    """
    # Shifted first, so that a small temperature cannot overflow.
    shaped = ((scores - scores.amax(dim=-1, keepdim=True)) / temperature).log_softmax(dim=-1)
    ranked, order = shaped.sort(dim=-1, descending=True, stable=True)
    kept = torch.ones_like(ranked, dtype=torch.bool)
    if top_k:
        kept[:, top_k:] = False
    if top_p < 1:
        share = ranked.masked_fill(~kept, -torch.inf).softmax(dim=-1)
        kept &= share.cumsum(dim=-1) - share < top_p
    if min_p:
        kept &= ranked >= ranked[:, :1] + torch.tensor(min_p).log().to(ranked.device)
    kept[:, 0] = True
    cut = torch.zeros_like(kept).scatter(1, order, ~kept)
    return shaped.masked_fill(cut, -torch.inf).log_softmax(dim=-1)
