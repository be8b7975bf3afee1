"""Scores of a model on pairs of sentences, and the loss that training and evaluation share."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.config import DecodeConfig
from transformer.data.batches import Batch, fits, move_without_waiting, pair_batches
from transformer.decoding.greedy import translate_ids
from transformer.decoding.methods import decode
from transformer.model.seq2seq import Seq2Seq
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training import metrics
from transformer.training.loss import UNSMOOTHED, Smoothing, projected_cross_entropy, smoothed_cross_entropy

States = Callable[..., Float[Tensor, "position d_model"]]


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on pairs, and what it wrote."""

    loss: float
    """Cross-entropy in nats per real target token, without smoothing."""
    perplexity: float
    exact_match: float
    bleu: metrics.Score | None
    """None where it was not asked for, or no reference has a 4-gram (`metrics.NO_BLEU`)."""
    chrf: metrics.Score | None
    count: int
    translations: tuple[str, ...]
    """The outputs, in the order of the pairs."""


@torch.no_grad()
def evaluate(
    model: Seq2Seq,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    *,
    overlap_scores: bool = False,
    batch_tokens: int = 4_096,
    max_length: int | None = None,
    decoding: DecodeConfig | None = None,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """Scores of the model on these pairs, each translated greedily in float32, or as `decoding` says.

    `overlap_scores` adds BLEU and chrF. `max_length` is the most tokens written for a pair greedily; None allows two
    more than the longest reference of the batch, past which no output is an exact match, but BLEU is, in a poor model,
    flattered. With `decoding` it is that setting's, or what the model can; of several outputs the first is scored.
    `progress` is told how many pairs each batch held. Leaves the model in the mode it was in. ValueError for no pairs,
    or one that is empty or too long for the model.
    """
    if not pairs:
        raise ValueError("there are no pairs to evaluate on")
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    total, tokens, translations = 0.0, 0, [""] * len(pairs)
    for rows, batch in pair_batches(pairs, tokenizer, batch_tokens, max_length=model.config.max_length):
        total += summed_loss(model, batch, device).item()
        tokens += batch.n_tokens
        source, mask = batch.source.to(device), batch.source_mask.to(device)
        if decoding is None:
            limit = min(max_length or batch.target_out.size(1) + 2, model.config.max_length)
            outputs = translate_ids(model, source, mask, max_length=limit)
        else:
            outputs = [best.text_ids for best, *_ in decode(model, source, mask, decoding)]
        for row, ids in zip(rows, outputs, strict=True):
            translations[row] = tokenizer.decode(ids)
        if progress is not None:
            progress(len(rows))
    model.train(was_training)
    references = [pair.target for pair in pairs]
    return Evaluation(
        loss=total / tokens,
        perplexity=math.exp(min(total / tokens, 700.0)),  # e^709 is the largest float
        exact_match=metrics.exact_match(translations, references),
        bleu=metrics.bleu(translations, references) if overlap_scores else None,
        chrf=metrics.chrf(translations, references) if overlap_scores else None,
        count=len(pairs),
        translations=tuple(translations),
    )


def fitting(
    pairs: Sequence[Pair], tokenizer: Tokenizer, max_length: int, count: int, *, name: str = "validation pairs"
) -> list[Pair]:
    """The first `count` pairs of which both sides fit into the model; ValueError, with their name, where none does."""
    found = list(islice((pair for pair in pairs if fits(pair, tokenizer, max_length)), count))
    if not found:
        raise ValueError(
            f"none of the {len(pairs):,} {name} fits into max_length ({max_length}) tokens: take a larger one"
        )
    return found


def decoder_states(model: Seq2Seq) -> States:
    """The forward pass up to the decoder's states at the wanted positions: padding would be projected in vain."""

    def states(
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
        target_mask: Bool[Tensor, "batch target"],
        wanted: Int[Tensor, " position"],
    ) -> Float[Tensor, "position d_model"]:
        found = model.decode(target, model.encode(source, source_mask), source_mask, target_mask)
        return found.flatten(0, 1)[wanted]  # [batch target d_model] -> [position d_model]

    return states


def summed_loss(
    model: Seq2Seq,
    batch: Batch,
    device: torch.device,
    smoothing: Smoothing = UNSMOOTHED,
    *,
    states: States | None = None,
    compiled: bool = False,
) -> Float[Tensor, ""]:
    """The cross-entropy of a batch in nats, summed over its real target tokens.

    `states` is a compiled `decoder_states(model)`, where there is one; with `compiled` so is what follows on a GPU.
    """
    # Real positions are found on the CPU, where the batch is made: on a GPU finding them would wait for the device.
    wanted = batch.target_mask.flatten().nonzero()[:, 0]
    targets = move_without_waiting(batch.target_out.flatten()[wanted], device)
    moved = batch.to(device, non_blocking=True)
    found = (states or decoder_states(model))(
        moved.source, moved.target_in, moved.source_mask, moved.target_mask, move_without_waiting(wanted, device)
    )
    if model.projection.bias is not None:  # of imported models
        return smoothed_cross_entropy(model.project(found), targets, smoothing)
    return projected_cross_entropy(found, model.projection.weight, targets, smoothing, compiled=compiled)
