"""Choosing a translation token by token: greedy decoding as a generator of steps, with a key/value cache.

Each step may be recorded; recording never changes the output beyond the rounding between the two attention paths.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.model import DecoderCache, Transformer
from transformer.taps import Recorder, Recording, Site, Tap, chain, needs_recomputation


@dataclass(frozen=True)
class Step:
    """One token for each row of the batch, and what the pass that chose it computed."""

    index: int
    """0 for the first token after bos."""
    tokens: Int[Tensor, "batch"]
    """The chosen ids; pad in rows that had ended before."""
    log_probs: Float[Tensor, "batch vocab"]
    """Natural log of the probability of every token."""
    finished: Bool[Tensor, "batch"]
    """Rows that have written eos, this step included."""
    recording: Recording | None
    """The wanted sites of this step's pass, interventions included; the first step also holds the encoder's pass."""


def greedy(
    model: Transformer,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    max_length: int,
    tap: Tap | None = None,
    record: Callable[[Site], bool] | None = None,
    cache: bool = True,
) -> Iterator[Step]:
    """Yields the most probable next token of each row (never pad) until all have written eos, or max_length tokens.

    `record` says which sites each step keeps (None: nothing). The cache is left out where the tap would make it wrong;
    each step then passes the whole prefix again. Raises ValueError when max_length is past the model's.
    """
    if not 1 <= max_length <= model.config.max_length:
        raise ValueError(f"max_length ({max_length}) must lie between 1 and the model's {model.config.max_length}")
    config = model.config
    source_mask = source != config.pad_id if source_mask is None else source_mask
    recorder = None if record is None else Recorder(record)
    with torch.no_grad():
        memory = model.encode(source, source_mask, tap=chain(tap, recorder))
    kept = model.new_cache() if cache and not needs_recomputation(tap) else None
    prefix = source.new_full((source.size(0), 1), config.bos_id)
    finished = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
    for index in range(max_length):
        log_probs = _next_log_probs(model, prefix, memory, source_mask, chain(tap, recorder), kept)
        tokens = _most_probable(log_probs, never=config.pad_id).masked_fill(finished, config.pad_id)
        finished = finished | (tokens == config.eos_id)
        yield Step(index, tokens, log_probs, finished, None if recorder is None else recorder.recording)
        if finished.all():
            return
        recorder = None if record is None else Recorder(record)
        prefix = torch.cat((prefix, tokens[:, None]), dim=1)


def translate_ids(
    model: Transformer,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    max_length: int,
) -> list[list[int]]:
    """The greedy output of each row, without eos and padding."""
    steps = [step.tokens for step in greedy(model, source, source_mask, max_length=max_length)]
    ends = (model.config.eos_id, model.config.pad_id)
    return [_until(row, ends) for row in torch.stack(steps, dim=1).tolist()]


@torch.no_grad()
def teacher_forced_log_probs(
    model: Transformer,
    source: Int[Tensor, "batch source"],
    target: Int[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    tap: Tap | None = None,
) -> Float[Tensor, "batch target vocab"]:
    """Log-probabilities of every token at each position of `target` (no bos), given the tokens of `target` before."""
    bos = target.new_full((target.size(0), 1), model.config.bos_id)
    logits = model(source, torch.cat((bos, target[:, :-1]), dim=1), source_mask, tap=tap)
    return logits.log_softmax(dim=-1)


@torch.no_grad()
def _next_log_probs(
    model: Transformer,
    prefix: Int[Tensor, "batch prefix"],
    memory: Float[Tensor, "batch source d_model"],
    source_mask: Bool[Tensor, "batch source"],
    tap: Tap | None,
    cache: DecoderCache | None,
) -> Float[Tensor, "batch vocab"]:
    new = prefix if cache is None else prefix[:, -1:]
    states = model.decode(new, memory, source_mask, tap=tap, cache=cache)
    return model.project(states[:, -1], tap=tap).log_softmax(dim=-1)


def _most_probable(log_probs: Float[Tensor, "batch vocab"], *, never: int) -> Int[Tensor, "batch"]:
    """Padding is no token to write: later steps would not see it, and readers take it for the end."""
    allowed = log_probs.clone()
    allowed[:, never] = -torch.inf
    return allowed.argmax(dim=-1)


def _until(ids: list[int], ends: tuple[int, ...]) -> list[int]:
    stop = next((i for i, token in enumerate(ids) if token in ends), len(ids))
    return ids[:stop]
