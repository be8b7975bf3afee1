"""Events of a training: a step, an evaluation, the end; and the error that ends it."""

from dataclasses import dataclass
from typing import Literal

from transformer.training.evaluation import Evaluation

Reason = Literal["max_steps", "max_seconds", "target_exact_match", "patience"]


NOT_FINITE = "is no longer a finite number"


class TrainingError(Exception):
    """Training cannot go on; the message says why and what to change."""


def not_finite(name: str, step: int) -> TrainingError:
    """Returns the error of a training in which this is not a finite number any more."""
    return TrainingError(
        f"{name} {NOT_FINITE} at step {step}: lower the learning rate, lengthen the warm-up or clip gradients harder"
    )


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


def as_event(found: Evaluation, step: int, elapsed_s: float) -> Evaluated:
    """The result of an evaluation at a step."""
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
