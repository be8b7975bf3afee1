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


@cache
def _read(corpus: str) -> tuple[Corpus, Tokenizer]:
    config = CorpusConfig(name=corpus)
    read = load_corpus(config)
    return read, corpus_tokenizer(read, config)


def train_briefly(corpus: str, model: ModelConfig, train: TrainConfig, *, seed: int) -> dict[str, float]:
    """Trains a model and returns what came of it.

    `exact_match`: of the last evaluation, 0..1, and 0 if the loss ceased to be a number. `steps_to_target`: the step of
    the first evaluation at TARGET; for one that never was there, the first that might have come after the end.
    `diverged`: 1 if the loss ceased to be a number or ended above that of the first step. `loss`: the last one.
    """
    read, tokenizer = _read(corpus)
    train = replace(
        train, seed=seed, evaluate_every=EVALUATE_EVERY, device="cpu", precision="float32", target_exact_match=None
    )
    state = new_state(replace(model, vocab_size=tokenizer.vocab_size), train, torch.device("cpu"))
    first = last = found = 0.0
    reached = train.max_steps + EVALUATE_EVERY
    try:
        for event in train_steps(state, train, read, tokenizer):
            if isinstance(event, StepDone):
                first, last = first or event.loss, event.loss
            elif isinstance(event, Evaluated):
                found = event.exact_match
                if found >= TARGET:
                    reached = min(reached, event.step)
    except TrainingError:
        found, last = 0.0, float("inf")
    diverged = not last < first
    return {
        "exact_match": found,
        "steps_to_target": float(reached),
        "diverged": float(diverged),
        "loss": min(last, 1e6),
    }
