"""How long a planned run will take here, from what earlier runs took here. Never a guess without a measurement."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.config import ModelConfig, TrainConfig
from transformer.runs import Run

LEAST_STEPS = 20
"""A run of fewer steps says more about its start than about its speed."""
FARTHEST = 4.0
"""A step is scaled from another only where it is at most this many times its work: small steps are mostly overhead."""


@dataclass(frozen=True)
class Estimate:
    """Seconds a step, and where they come from."""

    step_s: float
    run: str
    """The run that was measured."""
    same: bool
    """Whether that run had the same sizes and batches; else it is scaled by the work of a step."""
    busy: bool
    """Whether a run is at work that will share the cores."""


def step_estimate(model: ModelConfig, train: TrainConfig, runs: Sequence[Run]) -> Estimate | None:
    """Seconds a step as the newest like run took, else scaled from the newest run of about its size; None without."""
    busy = any(run.status.active for run in runs)
    measured = [run for run in runs if run.status.step >= LEAST_STEPS]
    for run in measured:
        if _kind(run.settings.model, run.settings.train) == _kind(model, train):
            return Estimate(run.status.elapsed_s / run.status.step, run.id, same=True, busy=busy)
    for run in measured:
        times = _work(model, train) / _work(run.settings.model, run.settings.train)
        if 1 / FARTHEST <= times <= FARTHEST:
            return Estimate(run.status.elapsed_s / run.status.step * times, run.id, same=False, busy=busy)
    return None


def is_same_work(model: ModelConfig, train: TrainConfig, other: ModelConfig, other_train: TrainConfig) -> bool:
    """Whether two runs compute the same number of the same steps, on whatever machine and threads."""
    return _sizes(model, train) == _sizes(other, other_train) and train.max_steps == other_train.max_steps


def duration(seconds: float) -> str:
    """Seconds as said in a sentence: "8 s", "2 min 10 s", "1 h 5 min"."""
    seconds = max(0, round(seconds))
    if seconds < 100:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest and minutes < 10 else "")
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")


def said(train: TrainConfig, estimate: Estimate | None, *, shipped_s: float | None = None) -> str:
    """The estimate as a clause: "about 25 s, at the speed of reverse-3".

    `shipped_s` is what a shipped model of the same settings took, on the machine where it was trained.
    """
    if train.max_seconds is not None:
        return f"ends after {duration(train.max_seconds)}"
    if estimate is None:
        elsewhere = f"; the shipped model took {duration(shipped_s)} on two cores" if shipped_s is not None else ""
        return f"time not measured here yet{elsewhere}"
    at_most = "at most " if train.target_exact_match is not None else ""
    whence = "at the speed of" if estimate.same else "scaled from the speed of"
    longer = "; more while another run shares the cores" if estimate.busy else ""
    seconds = _rounded(estimate.step_s * train.max_steps)
    return f"estimate: {at_most}about {duration(seconds)}, {whence} {estimate.run}{longer}"


def time_left(train: TrainConfig, *, step: int, elapsed_s: float) -> float | None:
    """Seconds until the limit, at the run's own speed so far; None before it has one."""
    if train.max_seconds is not None:
        return max(0.0, train.max_seconds - elapsed_s)
    return elapsed_s / step * max(0, train.max_steps - step) if step and elapsed_s else None


def share_done(train: TrainConfig, *, step: int, elapsed_s: float) -> float:
    """How far a run is on the way to its limit, 0..1."""
    done = elapsed_s / train.max_seconds if train.max_seconds is not None else step / train.max_steps
    return min(1.0, max(0.0, done))


def _kind(model: ModelConfig, train: TrainConfig) -> tuple[object, ...]:
    return *_sizes(model, train), train.precision, train.threads


def _sizes(model: ModelConfig, train: TrainConfig) -> tuple[object, ...]:
    sizes = (model.n_encoder_layers, model.n_decoder_layers, model.d_model, model.n_heads, model.d_ff, model.norm)
    return *sizes, train.batch_tokens, train.accumulate


def _work(model: ModelConfig, train: TrainConfig) -> float:
    """Multiplications of a step up to a constant: matrix entries times tokens. Rough on purpose; said to be scaled."""
    attention = 4 * model.d_model**2
    encoder = model.n_encoder_layers * (attention + 2 * model.d_model * model.d_ff)
    decoder = model.n_decoder_layers * (2 * attention + 2 * model.d_model * model.d_ff)
    return (encoder + decoder) * train.batch_tokens * train.accumulate


def _rounded(seconds: float) -> float:
    """To two significant digits: more would pretend."""
    return float(f"{seconds:.2g}")
