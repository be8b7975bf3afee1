"""A run's rows of metrics as curves, and the signs in them that something is wrong. Numbers in, numbers out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Curves:
    """Training and validation of one run, in the order of the steps, numbers that are not finite left out."""

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    """The smoothed cross-entropy of each step."""
    rates: tuple[float, ...]
    norms: tuple[float, ...]
    """The norms of all gradients, before clipping."""
    evaluations: tuple[dict, ...]
    """The rows of the split "validation"."""
    broken: int | None
    """The first step whose loss or gradient norm is not a finite number."""

    @property
    def window(self) -> int:
        """The number of steps over which a median is taken: single batches differ by how long their sentences are."""
        return max(10, len(self.steps) // 20)

    @property
    def medians(self) -> tuple[float, ...]:
        """The median loss of each window, one after the other; what is left over at the beginning is left out."""
        n, w = len(self.losses), self.window
        return tuple(median(self.losses[end - w : end]) for end in range(n % w + w, n + 1, w))

    def step_of(self, window: int) -> int:
        """Returns the last step of a window of `medians`."""
        return self.steps[len(self.losses) % self.window + (window + 1) * self.window - 1]

    @property
    def first(self) -> float:
        """The loss with which the run began."""
        return median(self.losses[:3])


def curves_of(rows: Sequence[dict]) -> Curves:
    """Reads the curves from the rows of a metrics.jsonl."""
    train = sorted((row for row in rows if row.get("split") == "train"), key=lambda row: row["step"])
    finite = [row for row in train if _finite(row, "loss") and _finite(row, "gradient_norm")]
    broken = next((row["step"] for row in train if row not in finite), None) if len(finite) < len(train) else None
    evaluations = (row for row in rows if row.get("split") == "validation" and _finite(row, "loss"))
    return Curves(
        steps=tuple(row["step"] for row in finite),
        losses=tuple(row["loss"] for row in finite),
        rates=tuple(row.get("learning_rate") or 0.0 for row in finite),
        norms=tuple(row["gradient_norm"] for row in finite),
        evaluations=tuple(sorted(evaluations, key=lambda row: row["step"])),
        broken=broken,
    )


@dataclass(frozen=True)
class Rise:
    """A loss that has left its lowest value for good, or came back to it with nothing learned."""

    lowest: float
    at: int
    highest: float
    highest_at: int
    now: float
    back: bool
    """True if it came back."""


def rise(curves: Curves) -> Rise | None:
    """Finds a training loss that stays above its lowest or first value by half a nat and a quarter of it, or one that
    rose above twice its first value and came back with nothing learned: to no less than nine tenths of its lowest value
    before that."""
    medians = curves.medians
    if len(medians) < 3:
        return None
    now, highest = min(medians[-2:]), max(range(len(medians)), key=medians.__getitem__)
    peak = medians[highest], curves.step_of(highest)
    lowest, at = _lowest(curves, len(medians))
    if now > lowest + 0.5 and now > 1.25 * lowest:
        return Rise(lowest, at, *peak, now, back=False)
    lowest, at = _lowest(curves, highest)
    return Rise(lowest, at, *peak, now, back=True) if peak[0] > 2 * curves.first and now > 0.9 * lowest else None


def _lowest(curves: Curves, windows: int) -> tuple[float, int]:
    """Returns the lowest loss of the first step and of so many windows, and its step."""
    found = [(curves.first, curves.steps[0])]
    found += [(loss, curves.step_of(window)) for window, loss in enumerate(curves.medians[:windows])]
    return min(found, key=lambda each: each[0])


def relapses(curves: Curves) -> list[tuple[int, float]]:
    """Finds where the median loss rose by more than 0.4 nats above its lowest and fell again: the step and the rise."""
    found: list[tuple[int, float]] = []
    lowest, peak, peak_at = math.inf, 0.0, 0
    for window, value in enumerate(curves.medians):
        if value > lowest + 0.4 and value > 1.2 * lowest:
            if value - lowest > peak:
                peak, peak_at = value - lowest, curves.step_of(window)
        elif peak and value < lowest + peak / 2:
            found.append((peak_at, peak))
            peak = 0.0
        lowest = min(lowest, value)
    return found


@dataclass(frozen=True)
class Turn:
    """A validation loss that fell, turned, and rose while the training loss went on falling."""

    at: int
    lowest: float
    now: float
    step: int
    train_then: float
    train_now: float
    score: str
    """The score that tells if the translations suffer: "exact_match", "chrf" or "bleu"."""
    score_then: float
    score_now: float


def turn(curves: Curves) -> Turn | None:
    """Finds the turn of the validation loss: up by 5 % and 0.1 nats over two evaluations, the training loss down."""
    rows = curves.evaluations
    if len(rows) < 4:
        return None
    best = min(range(len(rows)), key=lambda i: rows[i]["loss"])
    after = [row["loss"] for row in rows[best + 1 :]]
    if len(after) < 2:
        return None
    lowest, now = rows[best]["loss"], min(after[-2:])
    then, last = _loss_around(curves, rows[best]["step"]), _loss_around(curves, rows[-1]["step"])
    if now < lowest + 0.1 or now < 1.05 * lowest or last > then - 0.02:
        return None
    score = next((name for name in ("bleu", "chrf") if _finite(rows[-1], name)), "exact_match")
    return Turn(
        rows[best]["step"],
        lowest,
        now,
        rows[-1]["step"],
        then,
        last,
        score,
        float(rows[best].get(score) or 0.0),
        float(rows[-1].get(score) or 0.0),
    )


@dataclass(frozen=True)
class Stall:
    """A loss that stays where it is although the learning rate could still move it."""

    since: int
    before: float
    now: float
    evaluations: int


def stall(curves: Curves) -> Stall | None:
    """Finds a loss that the last 40 % of the evaluations (at least 4 of 8) did not improve, at a live learning rate."""
    rows = curves.evaluations
    if len(rows) < 8 or len(curves.medians) < 8:
        return None
    cut = len(rows) - max(4, round(0.4 * len(rows)))
    before, now = min(row["loss"] for row in rows[:cut]), min(row["loss"] for row in rows[cut:])
    since = rows[cut - 1]["step"]
    rates = [rate for step, rate in zip(curves.steps, curves.rates, strict=True) if step > since]
    alive = bool(rates) and sum(rates) / len(rates) > 0.2 * max(curves.rates)
    medians = curves.medians
    earlier, later = (median(part) for part in (medians[-4:-2], medians[-2:]))
    flat = now > 0.99 * before and later > 0.99 * earlier
    return Stall(since, before, now, len(rows) - cut) if flat and alive else None


def still_falling(curves: Curves) -> tuple[float, float] | None:
    """Returns how much the loss fell in the last fifth of the steps and in all, if that is a tenth of it or more."""
    medians = curves.medians
    if len(medians) < 10:
        return None
    fifth = max(1, len(medians) // 5)
    fell = median(medians[-2 * fifth : -fifth]) - median(medians[-fifth:])
    total = curves.first - medians[-1]
    return (fell, total) if total > 0.2 and fell > max(0.1, 0.1 * total) else None


def _loss_around(curves: Curves, step: int) -> float:
    near = [loss for s, loss in zip(curves.steps, curves.losses, strict=True) if step - curves.window < s <= step]
    return median(near) if near else math.inf


def _finite(row: dict, name: str) -> bool:
    value = row.get(name)
    return isinstance(value, int | float) and math.isfinite(value)
