"""The time of a run in words: the estimate before it starts, the time left, and both compared afterwards."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pages.shared.texts.catalogue import Texts
from pages.shared.wording import duration
from transformer.config import TrainConfig
from transformer.files import read_json, write_json
from transformer.interventions.names import plural
from transformer.runs.benchmark import Benchmark, forecast

TEXTS = Texts("live.run")
ESTIMATE_FILE = "estimate.json"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimate made when a run was started, in seconds."""

    training_s: float
    """The time on the run's own clock: steps, evaluations, saving."""
    scoring_s: float
    """The time to score the held-out pairs afterwards."""

    @property
    def total_s(self) -> float:
        """The sum of both."""
        return self.training_s + self.scoring_s


def estimate_of(measured: Benchmark, train: TrainConfig) -> Estimate:
    """Estimates a run with these settings."""
    found = forecast(measured, train)
    limit_s = math.inf if train.max_seconds is None else train.max_seconds
    return Estimate(training_s=min(found.training_s, limit_s), scoring_s=found.scoring_s)


def write_estimate(folder: Path, estimate: Estimate) -> None:
    """Writes the estimate into the folder of a run."""
    write_json(folder / ESTIMATE_FILE, asdict(estimate))


def read_estimate(folder: Path) -> Estimate | None:
    """Reads the estimate of the run in a folder; None where there is none."""
    found = read_json(folder / ESTIMATE_FILE)
    try:
        return Estimate(training_s=float(found["training_s"]), scoring_s=float(found["scoring_s"]))
    except (KeyError, TypeError, ValueError):
        return None


def compared(folder: Path, train: TrainConfig, *, step: int, elapsed_s: float) -> str:
    """Returns "estimated 62 s, took 58 s" for a run that went to the limit of its estimate; else nothing."""
    estimate = read_estimate(folder)
    to_the_limit = step >= train.max_steps or (train.max_seconds is not None and elapsed_s >= train.max_seconds)
    if estimate is None or not to_the_limit:
        return ""
    return TEXTS("estimated", estimate=duration(estimate.training_s), took=duration(elapsed_s))


def said(train: TrainConfig, measured: Benchmark, *, beside: Sequence[str] = (), after: Sequence[str] = ()) -> str:
    """Returns the estimate in a line.

    For example "about 25 s here, 600 steps at 30 ms and 12 evaluations; then 2 s for held-out pairs". `beside` names
    the runs that shared the cores with the measurement, `after` those that must end before it holds.
    """
    found, estimate = forecast(measured, train), estimate_of(measured, train)
    at_most = "at most " if train.target_exact_match is not None or train.patience is not None else ""
    evaluations = f"{found.evaluations:,} {plural(found.evaluations, 'evaluation')}"
    parts = f"{found.steps:,} steps at {each(found.steps_s / found.steps)}, {evaluations}"
    scoring = f"; then {duration(estimate.scoring_s)} for held-out pairs" if estimate.scoring_s >= 0.5 else ""
    about_s = float(f"{estimate.training_s:.2g}")  # more digits would claim more than was measured
    shared = f", measured beside {' and '.join(beside)}" if beside else ""
    later = f" once {' and '.join(after)} {'has' if len(after) == 1 else 'have'} ended" if after else ""
    return f"{at_most}about {duration(about_s)} here{later}: {parts}{scoring}{shared}"


def each(seconds: float) -> str:
    """Returns the seconds of one step with two digits: "31 ms", "170 ms", "2.4 s"."""
    value, unit = (seconds, "s") if seconds >= 1 else (1000 * seconds, "ms")
    return f"{float(f'{value:.2g}'):,.4g} {unit}"


def time_left(train: TrainConfig, *, step: int, elapsed_s: float) -> float | None:
    """Returns the seconds until the limit, at the run's own speed so far; None before it has one."""
    by_clock = None if train.max_seconds is None else max(0.0, train.max_seconds - elapsed_s)
    by_steps = elapsed_s / step * max(0, train.max_steps - step) if step and elapsed_s else None
    return min((left for left in (by_clock, by_steps) if left is not None), default=None)


def share_done(train: TrainConfig, *, step: int, elapsed_s: float) -> float:
    """Returns the share of a run's way to its limit that is done, 0..1."""
    by_clock = 0.0 if train.max_seconds is None else elapsed_s / train.max_seconds
    return min(1.0, max(0.0, by_clock, step / train.max_steps))
