"""A short training inside an experiment: no run folder, only what came of it."""

from dataclasses import replace
from functools import cache

import torch

from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.data.corpora import Corpus, corpus_tokenizer, load_corpus
from transformer.text.tokenizer import Tokenizer
from transformer.training.events import Evaluated, StepDone, TrainingError
from transformer.training.loop import train_steps
from transformer.training.state import new_state

TARGET = 0.99
"""The validation exact match that counts as learned."""
EVALUATE_EVERY = 50
HIGHEST = 10.0
"""Nats: a loss above it, or one that is no number, counts as this much; knowing nothing costs about 3."""


@cache
def _read(corpus: str) -> tuple[Corpus, Tokenizer]:
    config = CorpusConfig(name=corpus)
    read = load_corpus(config)
    return read, corpus_tokenizer(read, config)


def train_briefly(
    corpus: str, model: ModelConfig, train: TrainConfig, *, seed: int, every: int = EVALUATE_EVERY
) -> dict[str, float]:
    """Trains a model, evaluates it every so many steps and returns what came of it.

    `exact_match`: of the last evaluation, 0..1, and 0 if the loss ceased to be a number. `steps_to_target`: the step of
    the first evaluation at TARGET; for one that never was there, the first that might have come after the end.
    `diverged`: 1 if the loss ceased to be a number or ended above that of the first step. `loss`: that of the last step
    in training. `validation_loss`: that of the last evaluation, not smoothed. Losses are HIGHEST at most.
    """
    read, tokenizer = _read(corpus)
    train = replace(train, seed=seed, evaluate_every=every, device="cpu", precision="float32", target_exact_match=None)
    state = new_state(replace(model, vocab_size=tokenizer.vocab_size), train, torch.device("cpu"))
    first = last = found = 0.0
    validation = HIGHEST
    reached = train.max_steps + every
    try:
        for event in train_steps(state, train, read, tokenizer):
            if isinstance(event, StepDone):
                first, last = first or event.loss, event.loss
            elif isinstance(event, Evaluated):
                found, validation = event.exact_match, event.loss
                if found >= TARGET:
                    reached = min(reached, event.step)
    except TrainingError:
        found, last, validation = 0.0, HIGHEST, HIGHEST
    diverged = not last < first
    return {
        "exact_match": found,
        "steps_to_target": float(reached),
        "diverged": float(diverged),
        "loss": min(last, HIGHEST),
        "validation_loss": min(validation, HIGHEST),
    }
