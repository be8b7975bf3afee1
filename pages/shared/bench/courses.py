"""The course of a shipped model's training, as lessons and the gallery tell it: the loss, the rate, the gradient."""

from dataclasses import dataclass

import numpy as np

from pages.shared.bench.bench import Bench
from transformer.analysis.training.progress import progress_of
from transformer.checkpoints.settings import find_checkpoint


@dataclass(frozen=True)
class Moment:
    """A step of training."""

    step: int
    loss: float
    rate: float
    """The learning rate."""


@dataclass(frozen=True)
class Course:
    """How the training loss, smoothed and in nats, went."""

    first: Moment
    lowest: Moment
    """The lowest loss before the highest."""
    highest: Moment
    """The highest loss after the first tenth of the steps."""
    end: float
    """The mean loss of the last tenth of the steps."""
    gradient: float
    """The mean norm of the gradient in the second half, before clipping."""


def course_of(name: str) -> Course:
    """Returns the course of a shipped model's training."""
    train = progress_of(find_checkpoint(name)).train
    losses, tenth, half = train["loss"], len(train["loss"]) // 10, len(train["loss"]) // 2

    def moment(index: int) -> Moment:
        return Moment(int(train["step"][index]), float(losses[index]), float(train["learning_rate"][index]))

    highest = tenth + int(np.argmax(losses[tenth:]))
    return Course(
        first=moment(0),
        lowest=moment(int(np.argmin(losses[:highest]))),
        highest=moment(highest),
        end=float(losses[-tenth:].mean()),
        gradient=float(train["gradient_norm"][half:].mean()),
    )


def first_layer_peak(bench: Bench, name: str, text: str) -> float:
    """Returns the largest weight of a row in the encoder's first layer, on average over its rows and heads."""
    return float(bench.seen(name, text).attention("encoder_self").weights[0].max(-1).mean())
