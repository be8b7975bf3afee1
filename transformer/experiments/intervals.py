"""Estimates with their uncertainty: t intervals over few seeds, bootstrap intervals over many groups.

`recount.py` computes the same numbers by other means.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import fmean, stdev
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Method = Literal["t", "bootstrap", "exact"]
FEWEST = 3
"""Values below which no interval is given: two tell too little about their spread."""
RESAMPLES = 200_000
"""Draws of a bootstrap: with 10,000 an end near a border falls on one side or the other by the luck of the draws."""
_CHUNK = 10_000
_POWER = 0.8
"""The share of repeated experiments in which an effect of the smallest size that can be told is told."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; NaN ends where there are too few values."""

    estimate: float
    low: float
    high: float
    name: str
    """What it is."""
    values: tuple[float, ...] = ()
    """What the estimate is the mean of."""
    method: Method = "t"

    def p_value(self, border: float) -> float:
        """Returns the p value of "the number is the border", two-sided: the interval of that level ends there."""
        if math.isnan(self.low):
            return math.nan
        if self.method == "exact":
            return float(self.low <= border <= self.high)
        if self.method == "bootstrap":
            means = _bootstrap_means(self.values)
            tail = min(np.mean(means <= border), np.mean(means >= border))
            return min(1.0, 2.0 * max(float(tail), 1.0 / RESAMPLES))
        error = _standard_error(self.values)
        return (
            t_tails(abs(self.estimate - border) / error, len(self.values) - 1)
            if error
            else float(border == self.estimate)
        )

    def is_settled(self, p: float) -> bool:
        """Tells whether other draws would leave a p value on the same side of 0.05: four standard errors away."""
        error = 2.0 * math.sqrt(p / 2 * (1 - p / 2) / RESAMPLES)
        return self.method != "bootstrap" or abs(p - 0.05) > 4 * error

    @property
    def smallest(self) -> float:
        """Returns the smallest distance from a border that as many values, spread like these, tell with power 0.8."""
        if math.isnan(self.low) or self.method == "exact":
            return 0.0 if self.method == "exact" else math.nan
        freedom = len(self.values) - 1
        return (t_quantile(freedom) + t_quantile(freedom, 2 * (1 - _POWER))) * _standard_error(self.values)


def t_interval(values: Sequence[float], replicates: str = "seeds") -> Interval:
    """Returns the mean of some values with Student's 95 % interval for it."""
    n = len(values)
    if n < FEWEST:
        mean = fmean(values) if n else math.nan
        return Interval(mean, math.nan, math.nan, f"no interval: {n} {replicates}, at least {FEWEST} are needed")
    middle = fmean(values)
    half = t_quantile(n - 1) * _standard_error(values)
    return Interval(middle, middle - half, middle + half, f"95 % t interval over {n} {replicates}", tuple(values))


def bootstrap_interval(values: Sequence[float], replicates: str = "groups") -> Interval:
    """Returns the mean of some values with the 95 % percentile interval of their bootstrap, always the same draws."""
    n = len(values)
    if n < FEWEST:
        return t_interval(values, replicates)
    low, high = map(float, np.quantile(_bootstrap_means(tuple(values)), (0.025, 0.975)))
    name = f"95 % bootstrap interval over {n} {replicates}, {RESAMPLES:,} draws"
    return Interval(fmean(values), low, high, name, tuple(values), "bootstrap")


@lru_cache(maxsize=64)
def _bootstrap_means(values: tuple[float, ...]) -> Float[ndarray, " draw"]:
    rng, given = np.random.default_rng(0), np.asarray(values)
    chunks = [given[rng.integers(len(values), size=(_CHUNK, len(values)))] for _ in range(RESAMPLES // _CHUNK)]
    return np.concatenate([chunk.mean(axis=1) for chunk in chunks])


def _standard_error(values: Sequence[float]) -> float:
    return stdev(values) / math.sqrt(len(values))


def exact(values: Sequence[float]) -> Interval:
    """Returns a count that is the same every time, as an interval without width; the range where it is not."""
    name = "counted, the same each time"
    return Interval(fmean(values), min(values), max(values), name, tuple(values), "exact")


def t_tails(t: float, freedom: int) -> float:
    """Returns the share of Student's t distribution beyond ±t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle, odd = math.atan(t / math.sqrt(freedom)), freedom % 2
    square = math.cos(angle) ** 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * square
    inside = math.sin(angle) * total
    return 1.0 - (2 / math.pi * (angle + inside) if odd else inside)


@cache
def t_quantile(freedom: int, tails: float = 0.05) -> float:
    """Returns the t beyond which, on both sides together, this share of Student's distribution lies."""
    low, high = 0.0, 1e3
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tails(middle, freedom) > tails else (low, middle)
    return (low + high) / 2


def exponents(x: Sequence[Sequence[float]], y: Sequence[float]) -> tuple[float, ...]:
    """Returns the powers to which y grows with each column of x: a least-squares fit of logarithms."""
    logs = np.log(np.asarray(x, dtype=float).reshape(len(y), -1))
    design = np.column_stack((logs, np.ones(len(y))))
    fitted, *_ = np.linalg.lstsq(design, np.log(np.asarray(y, dtype=float)), rcond=None)
    return tuple(map(float, fitted[:-1]))
