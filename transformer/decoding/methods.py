"""Decoding by the method that a DecodeConfig names."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer.config import DecodeConfig
from transformer.decoding.beam import Hypothesis, beam_search
from transformer.decoding.greedy import Constraints, Step, greedy
from transformer.decoding.sampling import sample
from transformer.model.seq2seq import Seq2Seq


def decode(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None,
    settings: DecodeConfig,
) -> list[tuple[Hypothesis, ...]]:
    """The `n_best` outputs of each row: the best of the beam, the best first; samples in the order of their draw.

    Where no length norm is asked for, a score is the log-probability. ValueError for lengths past the model's.
    """
    length = model.config.max_length if settings.max_length is None else settings.max_length
    rules = Constraints(min_length=settings.min_length, no_repeat_ngram=settings.no_repeat_ngram)
    match settings.method:
        case "greedy":
            steps = greedy(model, source, source_mask, max_length=length, constraints=rules, cache=settings.cache)
            return [(written,) for written in _followed(model, steps)]
        case "beam":
            *_, last = beam_search(
                model,
                source,
                source_mask,
                size=settings.beam,
                max_length=length,
                alpha=settings.alpha,
                norm=settings.length_norm,
                early_stopping=settings.early_stopping,
                constraints=rules,
                cache=settings.cache,
            )
            return [results[: settings.n_best] for results in last.finished]
        case "sample":
            rows = torch.arange(source.size(0), device=source.device).repeat_interleave(settings.n_best)
            steps = sample(
                model,
                source[rows],
                None if source_mask is None else source_mask[rows],
                max_length=length,
                seed=settings.seed,
                temperature=settings.temperature,
                top_k=settings.top_k,
                top_p=settings.top_p,
                min_p=settings.min_p,
                constraints=rules,
                cache=settings.cache,
            )
            drawn = iter(_followed(model, steps))
            return [tuple(next(drawn) for _ in range(settings.n_best)) for _ in range(source.size(0))]


def _followed(model: Seq2Seq, steps: Iterator[Step]) -> list[Hypothesis]:
    """The output of each row, scored by the model's own log-probabilities."""
    tokens, scores = [], []
    for step in steps:
        tokens.append(step.tokens)
        scores.append(step.log_probs.gather(1, step.tokens[:, None])[:, 0])
    rows = zip(torch.stack(tokens, dim=1).tolist(), torch.stack(scores, dim=1), strict=True)
    return [_output(model, row, ids, log_probs) for row, (ids, log_probs) in enumerate(rows)]


def _output(model: Seq2Seq, row: int, ids: list[int], log_probs: Tensor) -> Hypothesis:
    length = ids.index(model.config.pad_id) if model.config.pad_id in ids else len(ids)
    total = log_probs[:length].sum().item()
    ended = ids[length - 1] == model.config.eos_id
    return Hypothesis(tuple(ids[:length]), total, total, (row,) * length, ended)
