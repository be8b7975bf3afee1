"""A corpus, a tokenizer and settings so small that a training step takes two milliseconds."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.data.corpora import Corpus, load_corpus
from transformer.runs import run_folder
from transformer.text.tokenizer import Tokenizer, train_tokenizer
from transformer.training.events import Event, Finished
from transformer.training.loop import train_steps
from transformer.training.state import TrainState, new_state

CPU = torch.device("cpu")
PATIENCE_S = 240.0
"""The time limit for a separate process that imports torch, on a busy machine."""
MODEL = ModelConfig(
    vocab_size=24, d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, max_length=32, dropout=0.1
)


@cache
def corpus() -> Corpus:
    """Reversed strings, with a small validation split."""
    loaded = load_corpus("reverse")
    return replace(loaded, validation=loaded.validation[:20], held_out={"random": loaded.held_out["random"][:20]})


@cache
def tokenizer() -> Tokenizer:
    return train_tokenizer("words", corpus().vocabulary)


def settings(**changes: Any) -> TrainConfig:
    """Training settings of a few quick steps."""
    defaults = dict(max_steps=20, batch_tokens=64, evaluate_every=10, evaluate_pairs=10, test_pairs=10, threads=1)
    return TrainConfig(**{**defaults, "precision": "float32", "device": "cpu", "warmup_steps": 10, **changes})


def state(config: TrainConfig, model: ModelConfig = MODEL) -> TrainState:
    return new_state(model, config, CPU)


def events(start: TrainState, config: TrainConfig, **options: Any) -> list[Event]:
    """All that happens until training ends."""
    return list(train_steps(start, config, corpus(), tokenizer(), **options))


def create(**changes: Any) -> str:
    """The id of a new run with the settings of a few quick steps."""
    options = {key: changes.pop(key) for key in ("pinned", "name", "command") if key in changes}
    return run_folder.create_run(MODEL, settings(**changes), CorpusConfig(name="reverse"), **options)


def losses(run_id: str) -> list[tuple[str, int, float]]:
    """Every loss that the run wrote down, with its split and step."""
    return [(row["split"], row["step"], row["loss"]) for row in run_folder.metrics(run_id)]


def event_losses(found: Iterable[Event]) -> list[tuple[str, int, float]]:
    """The loss of every step and evaluation among these events, with its kind and step."""
    return [(type(event).__name__, event.step, event.loss) for event in found if not isinstance(event, Finished)]


def wait_until(holds: Callable[[], Any], what: str) -> None:
    """Returns when this holds; fails where PATIENCE_S were not enough."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"waited in vain for: {what}"
        time.sleep(0.02)
