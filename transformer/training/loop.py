"""Training as a generator of events. No files, threads or prints: who listens decides what to do."""

import time
from collections.abc import Callable, Generator
from typing import Literal, get_args

import torch

from transformer.config import Precision, TrainConfig
from transformer.data.batches import BatchStream
from transformer.data.corpora import Corpus
from transformer.text.tokenizer import Tokenizer
from transformer.training.devices import autocast, faster_precision, generator_states, set_generator_states
from transformer.training.distributed import ALONE, Team
from transformer.training.evaluation import fitting, summed_loss
from transformer.training.events import Event, Finished, Reason
from transformer.training.loss import smoothing_of
from transformer.training.state import TrainState, load_weights, mean_weights
from transformer.training.step import Stepper

TRIAL_FROM = 500_000
"""Parameters from which bfloat16 is tried on a CPU: below, it gains a few per cent at most."""


def train_steps(
    state: TrainState,
    config: TrainConfig,
    corpus: Corpus,
    tokenizer: Tokenizer,
    *,
    precision: Precision = "float32",
    clock: Callable[[], float] = time.monotonic,
    team: Team = ALONE,
) -> Generator[Event, None, None]:
    """Trains from where the state stands until a limit of the config, yielding what happens.

    At each event of a step, `state` is that moment, or on a GPU (which reads its losses in groups) up to READ_EVERY
    steps later: save it where `event.step == state.step`. A caller who stops listening may go on later with the same
    state or a restored one. Raises TrainingError when the loss is no longer finite.

    Each process of a `team` runs this on a state of its own that began alike; a step then takes as many micro-batches
    more. Only rank 0 evaluates and decides when to end: the others yield their steps and end with it.
    """
    stream = BatchStream(
        corpus.train,
        tokenizer,
        batch_tokens=config.batch_tokens,
        seed=config.seed,
        max_length=state.model.config.max_length,
        position=state.position,
        width_multiple=_width_multiple(precision, state.device, state.model.config.max_length),
    )
    smoothing = smoothing_of(config, stream, state.model.config.vocab_size, state.device)
    stepper = Stepper(state, config, tokenizer, precision, clock, team, smoothing=smoothing)
    batches = iter(stream)
    validation = fitting(corpus.validation, tokenizer, state.model.config.max_length, config.evaluate_pairs)
    state.model.train()
    try:
        while True:
            due = state.step and state.step % config.evaluate_every == 0 and state.evaluated_step != state.step
            if due and team.leads:
                yield stepper.evaluate(validation, corpus.primary_metric)
            if (reason := _agreed_end(_ended(state, config), team)) is not None:
                break
            stepper.step(batches)
            if stepper.is_reading_due():
                yield from stepper.read()
    except GeneratorExit:
        if team.leads:
            _agreed_end("left", team)
        raise
    if reason == "left" or not team.leads:
        return
    if state.evaluated_step != state.step:
        yield stepper.evaluate(validation, corpus.primary_metric)
    if use_final_weights(state, config):
        yield stepper.evaluate(validation, corpus.primary_metric)
    yield Finished(reason, state.step, state.elapsed_s)


def _agreed_end(reason: Reason | Literal["left"] | None, team: Team) -> Reason | Literal["left"] | None:
    """Returns to every process the reason why rank 0 ends; "left" if its caller closed the generator."""
    reasons = (None, "left", *get_args(Reason))
    return reasons[team.told(reasons.index(reason))]


def use_final_weights(state: TrainState, config: TrainConfig) -> bool:
    """Puts the weights that the config asks for into the model; False where they are the latest, which it has.

    Averaged over the last evaluations (`average_last`, section 6.1), or those of the best one where training may end
    past it (`patience`).
    """
    match config.final_weights:
        case "averaged" if len(state.recent) > 1:
            load_weights(state.model, mean_weights(state.recent))
        case "best" if state.best and state.evaluations_without_gain:
            load_weights(state.model, state.best)
        case _:
            return False
    return True


def measured_precision(state: TrainState, config: TrainConfig, corpus: Corpus, tokenizer: Tokenizer) -> Precision:
    """The precision that `config.precision` means here; `auto` takes what is faster on this model and its first batch.

    On a CPU a model below TRIAL_FROM parameters is not tried: float32 it is. Leaves weights, optimiser, generators and
    data position as they are.
    """
    if config.precision != "auto":
        return config.precision
    if state.device.type == "cpu" and state.model.n_parameters() < TRIAL_FROM:
        return "float32"
    stream = BatchStream(
        corpus.train,
        tokenizer,
        batch_tokens=config.batch_tokens,
        seed=config.seed,
        max_length=state.model.config.max_length,
    )
    batch, _ = next(iter(stream))
    before = generator_states(state.device)

    def work(precision: Precision) -> None:
        with autocast(state.device, precision):
            loss = summed_loss(state.model, batch, state.device)
        loss.backward()
        state.model.zero_grad(set_to_none=True)

    try:
        return faster_precision(state.device, work)
    finally:
        set_generator_states(before, state.device)


def _ended(state: TrainState, config: TrainConfig) -> Reason | None:
    target = config.target_exact_match
    if target is not None and state.evaluated_step and state.last_exact_match >= target:
        return "target_exact_match"
    if config.patience is not None and state.evaluations_without_gain >= config.patience:
        return "patience"
    if state.step >= config.max_steps:
        return "max_steps"
    if config.max_seconds is not None and state.elapsed_s >= config.max_seconds:
        return "max_seconds"
    return None


def _width_multiple(precision: Precision, device: torch.device, max_length: int) -> int:
    """Columns in a step of a batch's width; no width may pass the model's length.

    Attention on CUDA copies every mask whose rows are not whole blocks of 16 bytes, at each call.
    """
    if precision == "float32":
        return 1
    multiples = (8, 4) if device.type == "cuda" else (4,)
    return next((multiple for multiple in multiples if max_length % multiple == 0), 1)
