"""One optimiser step and one evaluation on a training state; loop.py says when to do which."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer.config import Precision, TrainConfig
from transformer.data.batches import Batch, Position
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training.devices import autocast, avoid_faulty_kernels
from transformer.training.distributed import ALONE, Team
from transformer.training.evaluation import Evaluation, States, decoder_states, evaluate, summed_loss
from transformer.training.events import Evaluated, StepDone, as_event, not_finite
from transformer.training.loss import Smoothing
from transformer.training.schedule import learning_rate
from transformer.training.state import TrainState, weights_of

READ_EVERY = 10
"""Steps between readings of the loss on a GPU: each one waits for the device."""


class Stepper:
    """The parts of one `train_steps` call that steps and evaluations share."""

    def __init__(
        self,
        state: TrainState,
        config: TrainConfig,
        tokenizer: Tokenizer,
        precision: Precision,
        clock: Callable[[], float],
        team: Team = ALONE,
        *,
        smoothing: Smoothing,
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
        avoid_faulty_kernels(state.device)
        self.parameters = list(state.model.parameters())  # walking through the modules takes a millisecond
        plain = decoder_states(state.model)
        states: States = torch.compile(plain, dynamic=True) if config.compile else plain
        self.loss = team.shared(_SummedLoss(state, smoothing, states, compiled=config.compile))
        if not team.leads:  # another dropout than rank 0's, and another after each start
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
        norm = _clip(self.parameters, config.clip_norm)
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        state.optimizer.step()
        for parameter in self.parameters:
            parameter.grad = None
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
        with self.loss.no_sync() if isinstance(self.loss, DistributedDataParallel) and not last else nullcontext():
            with autocast(self.state.device, self.precision):
                loss = self.loss(batch) / tokens
            (loss * self.team.size).backward()  # processes take the mean of their gradients
        return loss.detach()


class _SummedLoss(nn.Module):
    """`summed_loss` as a module, which is what gradients can be shared around."""

    def __init__(self, state: TrainState, smoothing: Smoothing, states: States, *, compiled: bool) -> None:
        super().__init__()
        self.model = state.model
        self.device = state.device
        self.smoothing = smoothing
        self.states = states
        self.compiled = compiled

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        return summed_loss(self.model, batch, self.device, self.smoothing, states=self.states, compiled=self.compiled)


@dataclass(frozen=True)
class _Pending:
    step: int
    rate: float
    tokens: int
    loss: Tensor
    norm: Tensor


def _clip(parameters: Sequence[nn.Parameter], limit: float) -> Float[Tensor, ""]:
    """The norm of all gradients, which are then scaled down to the limit where they are above it (0: never)."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if norm.device.type == "cpu" and bool(limit / (norm + 1e-6) >= 1):  # a factor of 1, and a product a parameter
        return norm
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


def _refuse_nonfinite(event: StepDone) -> None:
    for name, value in (("loss", event.loss), ("gradient", event.gradient_norm)):
        if not math.isfinite(value):
            raise not_finite(f"the {name}", event.step)
