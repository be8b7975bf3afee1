"""Training as a generator of events. No files, threads or prints: who listens decides what to do."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer.config import Precision, TrainConfig
from transformer.corpora import Corpus
from transformer.data import Batch, BatchStream, Position
from transformer.devices import autocast, faster_precision, generator_states, set_generator_states
from transformer.evaluation import Evaluation, States, decoder_states, evaluate, fitting, summed_loss
from transformer.model import Transformer
from transformer.pairs import Pair
from transformer.schedule import learning_rate
from transformer.state import TrainState, load_weights, mean_weights, weights_of
from transformer.team import ALONE, Team
from transformer.tokenizer import Tokenizer

Reason = Literal["max_steps", "max_seconds", "target_exact_match", "patience"]
READ_EVERY = 10
"""Steps between readings of the loss on a GPU: each one waits for the device."""

TRIAL_FROM = 500_000
"""Parameters from which bfloat16 is tried on a CPU: below, it gains a few per cent at most."""


class TrainingError(Exception):
    """Training cannot go on; the message says why and what to change."""


@dataclass(frozen=True)
class StepDone:
    """One optimiser step."""

    step: int
    """1 for the first."""
    loss: float
    """Label-smoothed cross-entropy in nats per real target token."""
    learning_rate: float
    gradient_norm: float
    """Before clipping."""
    tokens: int
    """Real target tokens in the step."""
    tokens_per_s: float
    elapsed_s: float
    """Seconds of training, evaluations included, pauses not."""


@dataclass(frozen=True)
class Evaluated:
    """The model on validation pairs after a step."""

    step: int
    loss: float
    """Cross-entropy in nats per real target token, without smoothing."""
    perplexity: float
    exact_match: float
    """0..1."""
    bleu: float | None
    """0..100; None where the corpus is not scored by it."""
    chrf: float | None
    count: int
    """Pairs scored."""
    elapsed_s: float


@dataclass(frozen=True)
class Finished:
    """Training has ended by itself, and the model holds its final weights."""

    reason: Reason
    step: int
    elapsed_s: float


Event = StepDone | Evaluated | Finished


def train_steps(
    state: TrainState,
    config: TrainConfig,
    corpus: Corpus,
    tokenizer: Tokenizer,
    *,
    precision: Precision = "float32",
    clock: Callable[[], float] = time.monotonic,
    team: Team = ALONE,
) -> Iterator[Event]:
    """Trains from where the state stands until a limit of the config, yielding what happens.

    At each event of a step, `state` is that moment, or on a GPU (which reads its losses in groups) up to READ_EVERY
    steps later: save it where `event.step == state.step`. A caller who stops listening may go on later with the same
    state or a restored one. Raises TrainingError when the loss is no longer finite.

    Each process of a `team` runs this on a state of its own that began alike; a step then takes as many micro-batches
    more. Only the leader evaluates and decides: the others yield their steps and end when it does.
    """
    trainer = _Trainer(state, config, tokenizer, precision, clock, team)
    stream = BatchStream(
        corpus.train,
        tokenizer,
        batch_tokens=config.batch_tokens,
        seed=config.seed,
        max_length=state.model.config.max_length,
        position=state.position,
        width_multiple=_width_multiple(precision, state.model.config.max_length),
    )
    batches = iter(stream)
    validation = fitting(corpus.validation, tokenizer, state.model.config.max_length, config.evaluate_pairs)
    state.model.train()
    try:
        while True:
            due = state.step and state.step % config.evaluate_every == 0 and state.evaluated_step != state.step
            if due and team.leads:
                yield trainer.evaluate(validation, corpus.primary_metric)
            if (reason := _agreed_end(_ended(state, config), team)) is not None:
                break
            trainer.step(batches)
            if trainer.is_reading_due():
                yield from trainer.read()
    except GeneratorExit:
        if team.leads:
            _agreed_end("left", team)
        raise
    if reason == "left" or not team.leads:
        return
    if state.evaluated_step != state.step:
        yield trainer.evaluate(validation, corpus.primary_metric)
    if use_final_weights(state, config):
        yield trainer.evaluate(validation, corpus.primary_metric)
    yield Finished(reason, state.step, state.elapsed_s)


def _agreed_end(reason: Reason | Literal["left"] | None, team: Team) -> Reason | Literal["left"] | None:
    """Why the leader ends, in every process; "left": it stopped listening."""
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


def as_event(found: Evaluation, step: int, elapsed_s: float) -> Evaluated:
    """What there is to say of an evaluation at a step."""
    return Evaluated(
        step=step,
        loss=found.loss,
        perplexity=found.perplexity,
        exact_match=found.exact_match,
        bleu=None if found.bleu is None else found.bleu.value,
        chrf=None if found.chrf is None else found.chrf.value,
        count=found.count,
        elapsed_s=elapsed_s,
    )


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


class _Trainer:
    """The parts of one `train_steps` call that steps and evaluations share."""

    def __init__(
        self,
        state: TrainState,
        config: TrainConfig,
        tokenizer: Tokenizer,
        precision: Precision,
        clock: Callable[[], float],
        team: Team = ALONE,
    ) -> None:
        self.state = state
        self.team = team
        self.config = config
        self.tokenizer = tokenizer
        self.precision: Precision = precision
        self.clock = clock
        self.started = clock() - state.elapsed_s
        self.last_read = clock()
        self.pending: list[_Pending] = []
        plain = decoder_states(state.model)
        states: States = torch.compile(plain, dynamic=True) if config.compile else plain
        self.loss = team.shared(_SummedLoss(state, config.label_smoothing, states))
        if not team.leads:  # other dropout than the leader's, and other after each start
            with state.own_generators():
                torch.manual_seed(hash((config.seed, team.rank, state.step)))

    def step(self, batches: Iterator[tuple[Batch, Position]]) -> None:
        """One optimiser step over `accumulate` micro-batches a process, normalised by their real tokens together."""
        state, config, team = self.state, self.config, self.team
        micro = [next(batches) for _ in range(config.accumulate * team.size)]
        tokens = sum(batch.n_tokens for batch, _ in micro)
        rate = self._rate(state.step + 1)
        mine = [batch for batch, _ in micro[team.rank :: team.size]]
        with state.own_generators():
            loss = sum((self._backward(batch, tokens) for batch in mine[:-1]), torch.zeros((), device=state.device))
            loss = loss + self._backward(mine[-1], tokens, last=True)
        norm = _clip(state.model, config.clip_norm)
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)
        state.step += 1
        state.position = micro[-1][1]
        self.pending.append(_Pending(state.step, rate, tokens, loss, norm))

    def is_reading_due(self) -> bool:
        """On a CPU always; on a GPU every READ_EVERY steps, at powers of two and before evaluations."""
        step = self.state.step
        return (
            self.state.device.type == "cpu"
            or step % READ_EVERY == 0
            or step & (step - 1) == 0
            or step % self.config.evaluate_every == 0
            or step == self.config.max_steps
        )

    def read(self) -> list[StepDone]:
        """The steps since the last reading; waits for the device."""
        losses = self.team.total(torch.stack([pending.loss for pending in self.pending])).tolist()
        norms = torch.stack([pending.norm for pending in self.pending]).tolist()
        now = self.clock()
        self.state.elapsed_s = now - self.started
        speed = sum(pending.tokens for pending in self.pending) / max(now - self.last_read, 1e-9)
        events = [
            StepDone(p.step, loss, p.rate, norm, p.tokens, speed, self.state.elapsed_s)
            for p, loss, norm in zip(self.pending, losses, norms, strict=True)
        ]
        self.pending.clear()
        self.last_read = now
        for event in events:
            _refuse_nonfinite(event)
        return events

    def evaluate(self, pairs: Sequence[Pair], primary: str) -> Evaluated:
        """Scores the model, and notes in the state what stopping and final weights depend on."""
        state = self.state
        found = evaluate(state.model, pairs, self.tokenizer, overlap_scores=primary != "exact_match")
        if state.evaluated_step != state.step:
            _note(state, self.config, found)
        self.last_read = self.clock()
        state.elapsed_s = self.last_read - self.started
        return as_event(found, state.step, state.elapsed_s)

    def _rate(self, step: int) -> float:
        c = self.config
        return learning_rate(
            step, kind=c.schedule, peak=c.learning_rate, warmup_steps=c.warmup_steps, max_steps=c.max_steps
        )

    def _backward(self, batch: Batch, tokens: int, *, last: bool = False) -> Float[Tensor, ""]:
        """The part of the step's loss that this micro-batch makes; gradients travel with the last one."""
        together = last or not isinstance(self.loss, DistributedDataParallel)
        with nullcontext() if together else self.loss.no_sync():
            with autocast(self.state.device, self.precision):
                loss = self.loss(batch) / tokens
            (loss * self.team.size).backward()  # processes take the mean of their gradients
        return loss.detach()


class _SummedLoss(nn.Module):
    """`summed_loss` as a module, which is what gradients can be shared around."""

    def __init__(self, state: TrainState, smoothing: float, states: States) -> None:
        super().__init__()
        self.model = state.model
        self.device = state.device
        self.smoothing = smoothing
        self.states = states

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        return summed_loss(self.model, batch, self.device, self.smoothing, states=self.states)


@dataclass(frozen=True)
class _Pending:
    step: int
    rate: float
    tokens: int
    loss: Tensor
    norm: Tensor


def _clip(model: Transformer, limit: float) -> Float[Tensor, ""]:
    """The norm of all gradients, which are then scaled down to the limit where they are above it (0: never)."""
    parameters = [p for p in model.parameters() if p.grad is not None]
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if limit > 0:
        torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)
    return norm


def _note(state: TrainState, config: TrainConfig, found: Evaluation) -> None:
    state.evaluated_step = state.step
    state.last_exact_match = found.exact_match
    if state.best_loss is None or found.loss < state.best_loss:
        state.best_loss, state.evaluations_without_gain = found.loss, 0
        state.best = weights_of(state.model) if config.final_weights == "best" else {}
    else:
        state.evaluations_without_gain += 1
    if config.final_weights == "averaged":
        state.recent.append(weights_of(state.model))
        while len(state.recent) > config.average_last:
            state.recent.popleft()


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


def _width_multiple(precision: Precision, max_length: int) -> int:
    """Columns in a step of a batch's width; no width may pass the model's length."""
    return 4 if precision == "bfloat16" and max_length % 4 == 0 else 1


def _refuse_nonfinite(event: StepDone) -> None:
    for name, value in (("loss", event.loss), ("gradient", event.gradient_norm)):
        if not math.isfinite(value):
            raise TrainingError(
                f"the {name} is no longer a finite number at step {event.step}: "
                "lower the learning rate, lengthen the warm-up or clip gradients harder"
            )
