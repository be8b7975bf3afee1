"""Estimates with their uncertainty: t intervals over few seeds, bootstrap intervals over many groups.

`recount.py` computes the same numbers by other means.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

_T_975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
"""The 97.5 % quantile of Student's t distribution for 1, 2, ... degrees of freedom."""
_Z_975 = 1.959964
FEWEST = 3
"""Values below which no interval is given: two tell too little about their spread."""
RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; NaN ends where there are too few values."""

    estimate: float
    low: float
    high: float
    name: str
    """What it is."""


def t_interval(values: Sequence[float], replicates: str = "seeds") -> Interval:
    """Returns the mean of some values with Student's 95 % interval for it."""
    n = len(values)
    if n < FEWEST:
        mean = fmean(values) if n else math.nan
        return Interval(mean, math.nan, math.nan, f"no interval: {n} {replicates}, at least {FEWEST} are needed")
    middle = fmean(values)
    half = t_quantile(n - 1) * stdev(values) / math.sqrt(n)
    return Interval(middle, middle - half, middle + half, f"95 % t interval over {n} {replicates}")


def bootstrap_interval(values: Sequence[float], replicates: str = "groups") -> Interval:
    """Returns the mean of some values with the 95 % percentile interval of their bootstrap, always the same draws."""
    n = len(values)
    if n < FEWEST:
        return t_interval(values, replicates)
    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    low, high = np.quantile(np.asarray(values)[drawn].mean(axis=1), (0.025, 0.975))
    return Interval(fmean(values), float(low), float(high), f"95 % bootstrap interval over {n} {replicates}")


def exact(values: Sequence[float]) -> Interval:
    """Returns a count that is the same every time, as an interval without width; the range where it is not."""
    return Interval(fmean(values), min(values), max(values), "counted, the same each time")


def t_quantile(freedom: int) -> float:
    """Returns the 97.5 % quantile of Student's t distribution with this many degrees of freedom."""
    if freedom <= len(_T_975):
        return _T_975[freedom - 1]
    z = _Z_975  # Cornish and Fisher's expansion
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def exponents(x: Sequence[Sequence[float]], y: Sequence[float]) -> tuple[float, ...]:
    """Returns the powers to which y grows with each column of x: a least-squares fit of logarithms."""
    logs = np.log(np.asarray(x, dtype=float).reshape(len(y), -1))
    design = np.column_stack((logs, np.ones(len(y))))
    fitted, *_ = np.linalg.lstsq(design, np.log(np.asarray(y, dtype=float)), rcond=None)
    return tuple(map(float, fitted[:-1]))
