"""A training inside an experiment: in memory, or an ordinary run that opens on every page.

Inside `kept_as_runs` each training is that of a run, in this process: it has its folder, curves and card, and can be
watched, paused and deleted. What is measured is the same either way.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache

import torch

from transformer.checkpoints.settings import CheckpointError, as_name
from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.corpora import Corpus, corpus_tokenizer, load_corpus
from transformer.experiments.results import ExperimentError
from transformer.model.families import AnyModel
from transformer.runs import run_folder
from transformer.runs.status import RunError
from transformer.runs.worker import train_run
from transformer.text.tokenizer import Tokenizer
from transformer.training.events import NOT_FINITE, Evaluated, Event, StepDone, TrainingError
from transformer.training.loop import train_steps
from transformer.training.state import TrainState, new_state

TARGET = 0.99
"""The validation exact match that counts as learned."""
EVALUATE_EVERY = 50
HIGHEST = 10.0
"""Nats: a loss above it, or one that is no number, counts as this much; knowing nothing costs about 3."""


@dataclass(frozen=True)
class Trained:
    """A model at the end of its training, with what it was trained on."""

    model: AnyModel
    corpus: Corpus
    tokenizer: Tokenizer


@cache
def _read(config: CorpusConfig) -> tuple[Corpus, Tokenizer]:
    read = load_corpus(config)
    return read, corpus_tokenizer(read, config)


def begin(corpus: CorpusConfig, model: AnyModelConfig, train: TrainConfig) -> tuple[TrainState, Corpus, Tokenizer]:
    """Returns a training before its first step, on the processor and in float32, and what it reads."""
    read, tokenizer = _read(corpus)
    state = new_state(replace(model, vocab_size=tokenizer.vocab_size), train, torch.device("cpu"))
    return state, read, tokenizer


@dataclass(frozen=True)
class _Kept:
    """How runs are named, and the command that makes them."""

    prefix: str
    command: str


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def kept_as_runs(prefix: str, command: str) -> Iterator[None]:
    """A block in which each training is that of a run, whose name begins with the prefix."""
    before = _KEPT.set(_Kept(prefix, command))
    try:
        yield
    finally:
        _KEPT.reset(before)


def train_model(
    corpus: CorpusConfig,
    model: AnyModelConfig,
    train: TrainConfig,
    *,
    seed: int,
    run: str,
    on_step: Callable[[int, AnyModel], object] = lambda step, model: None,
) -> Trained:
    """Trains a model to the last step and returns it; `on_step` sees it after each. `run` ends the name of its run."""
    train = replace(train, seed=seed, evaluate_every=train.max_steps)

    def see(event: Event, model: AnyModel) -> None:
        if isinstance(event, StepDone):
            on_step(event.step, model)

    return Trained(_train(corpus, model, train, see, run).eval(), *_read(corpus))


def train_briefly(
    corpus: str,
    model: AnyModelConfig,
    train: TrainConfig,
    *,
    seed: int,
    run: str,
    every: int = EVALUATE_EVERY,
    alter: Callable[[AnyModel], object] | None = None,
) -> dict[str, float]:
    """Trains a model, evaluates it every so many steps and returns what came of it. `run` ends the name of its run.

    `alter` may change the model before; it is not that of its settings then, and leaves no run.

    `exact_match`: of the last evaluation, 0..1, and 0 if the loss ceased to be a number. `steps_to_target`: the step of
    the first evaluation at TARGET; for one that never was there, the first that might have come after the end.
    `diverged`: 1 if the loss ceased to be a number or ended above that of the first step. `loss`: that of the last step
    in training. `validation_loss`: that of the last evaluation, not smoothed. Losses are HIGHEST at most.
    """
    train = replace(train, seed=seed, evaluate_every=every, target_exact_match=None)
    losses: list[float] = []
    evaluations: list[Evaluated] = []

    def see(event: Event, model: AnyModel) -> None:
        if isinstance(event, StepDone):
            losses.append(event.loss)
        elif isinstance(event, Evaluated):
            evaluations.append(event)

    try:
        _train(CorpusConfig(name=corpus), model, train, see, run, alter)
        last, found, validation = losses[-1], evaluations[-1].exact_match, evaluations[-1].loss
    except TrainingError:
        last, found, validation = HIGHEST, 0.0, HIGHEST
    reached = [event.step for event in evaluations if event.exact_match >= TARGET]
    return {
        "exact_match": found,
        "steps_to_target": float(reached[0] if reached else train.max_steps + every),
        "diverged": float(not (losses and last < losses[0])),
        "loss": min(last, HIGHEST),
        "validation_loss": min(validation, HIGHEST),
    }


def _train(
    corpus: CorpusConfig,
    model: AnyModelConfig,
    train: TrainConfig,
    see: Callable[[Event, AnyModel], object],
    run: str,
    alter: Callable[[AnyModel], object] | None = None,
) -> AnyModel:
    """Trains a model, on one thread, and returns it; `see` is told what happens.

    TrainingError where the loss ceases to be a number; ExperimentError where its run is paused, stopped or deleted.
    """
    train = replace(train, device="cpu", precision="float32", threads=1)
    if (kept := _KEPT.get()) is not None and alter is None:
        return _train_run(kept, corpus, model, train, see, run)
    state, read, tokenizer = begin(corpus, model, train)
    if alter is not None:
        alter(state.model)
    for event in train_steps(state, train, read, tokenizer):
        see(event, state.model)
    return state.model


def _train_run(
    kept: _Kept,
    corpus: CorpusConfig,
    model: AnyModelConfig,
    train: TrainConfig,
    see: Callable[[Event, AnyModel], object],
    run: str,
) -> AnyModel:
    read, tokenizer = _read(corpus)
    name = as_name(f"{kept.prefix} {run}")
    _delete_unfinished(name, kept.command)
    fitting = [text for text in read.examples if len(tokenizer.encode(text)) < model.max_length]
    curves = min(train.evaluate_every, max(EVALUATE_EVERY, train.max_steps // 10))
    watched = replace(train, evaluate_every=curves)
    states: list[TrainState] = []

    def progress(event: Event) -> None:
        asked = event.step % train.evaluate_every == 0 or event.step == train.max_steps
        if asked or not isinstance(event, Evaluated):  # the others are for the curves alone
            see(event, states[0].model)

    try:
        run_id = run_folder.create_run(model, watched, corpus, pinned=fitting[:3], name=name, command=kept.command)
        ended = train_run(run_id, progress, begun=states.append)
    except RunError as error:
        raise ExperimentError(str(error)) from error
    if NOT_FINITE in ended.error:
        raise TrainingError(ended.error)
    if ended.state != "finished":
        why = ended.error or ended.reason or "as was asked"
        raise ExperimentError(f"the run {run_id} is {ended.state} ({why}): continue the experiment to train it anew")
    return states[0].model


def _delete_unfinished(name: str, command: str) -> None:
    """Deletes what the same command left of this run when it was stopped."""
    try:
        found = run_folder.get_run(name)
        if found.settings.command == command and found.status.state != "finished" and not found.status.active:
            run_folder.delete(name)
    except (RunError, CheckpointError):  # there is none, or it is no longer ours: the new one gets a number
        return
