"""How long a run takes, in words: foreseen before it starts, left while it trains, and both compared afterwards."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pages.shared.wording import duration
from transformer.config import TrainConfig
from transformer.files import read_json, write_json
from transformer.runs.benchmark import Benchmark, Forecast, forecast

ESTIMATE_FILE = "estimate.json"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What was foreseen for a run when it was started, in seconds."""

    training_s: float
    """What the run's own clock counts: steps, evaluations, saving."""
    scoring_s: float
    """The held-out pairs, scored afterwards."""

    @property
    def total_s(self) -> float:
        """Both."""
        return self.training_s + self.scoring_s


def estimate_of(measured: Benchmark, train: TrainConfig) -> Estimate:
    """What a run with these settings will take."""
    found = forecast(measured, train)
    return Estimate(training_s=_within(train, found), scoring_s=found.scoring_s)


def write_estimate(folder: Path, estimate: Estimate) -> None:
    """Leaves the estimate in the folder of a run, for its view."""
    write_json(folder / ESTIMATE_FILE, asdict(estimate))


def read_estimate(folder: Path) -> Estimate | None:
    """What was foreseen for the run in a folder; None where nothing was."""
    found = read_json(folder / ESTIMATE_FILE)
    try:
        return Estimate(training_s=float(found["training_s"]), scoring_s=float(found["scoring_s"]))
    except (KeyError, TypeError, ValueError):
        return None


def compared(folder: Path, train: TrainConfig, *, step: int, elapsed_s: float) -> str:
    """ "estimated 62 s, took 58 s", where a run went to the limit that the estimate was made for; else nothing."""
    estimate = read_estimate(folder)
    to_the_limit = step >= train.max_steps or (train.max_seconds is not None and elapsed_s >= train.max_seconds)
    if estimate is None or not to_the_limit:
        return ""
    return f"estimated {duration(estimate.training_s)}, took {duration(elapsed_s)}"


def said(train: TrainConfig, measured: Benchmark, *, beside: Sequence[str] = ()) -> str:
    """The estimate in a line: "about 25 s here, 600 steps at 30 ms and 12 evaluations; then 2 s for held-out pairs".

    `beside` names the runs that shared the cores with the measurement.
    """
    found, estimate = forecast(measured, train), estimate_of(measured, train)
    at_most = "at most " if train.target_exact_match is not None or train.patience is not None else ""
    evaluations = f"{found.evaluations:,} evaluation{'s' * (found.evaluations != 1)}"
    parts = f"{found.steps:,} steps at {each(found.steps_s / found.steps)}, {evaluations}"
    scoring = f"; then {duration(estimate.scoring_s)} for held-out pairs" if estimate.scoring_s >= 0.5 else ""
    shared = f", measured beside {' and '.join(beside)}" if beside else ""
    return f"{at_most}about {duration(_rounded(estimate.training_s))} here: {parts}{scoring}{shared}"


def each(seconds: float) -> str:
    """The seconds of one step to two digits: "31 ms", "170 ms", "2.4 s"."""
    value, unit = (seconds, "s") if seconds >= 1 else (1000 * seconds, "ms")
    return f"{float(f'{value:.2g}'):,.4g} {unit}"


def time_left(train: TrainConfig, *, step: int, elapsed_s: float) -> float | None:
    """Seconds until the limit, at the run's own speed so far; None before it has one."""
    by_clock = None if train.max_seconds is None else max(0.0, train.max_seconds - elapsed_s)
    by_steps = elapsed_s / step * max(0, train.max_steps - step) if step and elapsed_s else None
    return min((left for left in (by_clock, by_steps) if left is not None), default=None)


def share_done(train: TrainConfig, *, step: int, elapsed_s: float) -> float:
    """How far a run is on the way to its limit, 0..1."""
    by_clock = 0.0 if train.max_seconds is None else elapsed_s / train.max_seconds
    return min(1.0, max(0.0, by_clock, step / train.max_steps))


def _within(train: TrainConfig, found: Forecast) -> float:
    return found.training_s if train.max_seconds is None else min(found.training_s, train.max_seconds)


def _rounded(seconds: float) -> float:
    """To two significant digits: more would pretend."""
    return float(f"{seconds:.2g}")
