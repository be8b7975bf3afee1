"""The statistics of experiments computed again, for "Prove it": plain loops that share no code with intervals.py."""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np


def column(rows: Sequence[Mapping], metric: str, **where: object) -> dict[int, float]:
    """Returns a metric by seed in the rows of the file with these levels."""
    return {
        row["seed"]: row[metric]
        for row in rows
        if row.get(metric) is not None and all(row[name] == level for name, level in where.items())
    }


def apart(rows: Sequence[Mapping], metric: str, first: Mapping, second: Mapping) -> dict[int, float]:
    """Returns a metric in one cell minus the same in another, by seed."""
    a, b = column(rows, metric, **first), column(rows, metric, **second)
    return {seed: value - b[seed] for seed, value in a.items() if seed in b}


def mean_and_t(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns the mean and the ends of Student's 95 % interval."""
    n = len(values)
    if n < 3:
        return (math.fsum(values) / n if n else math.nan), math.nan, math.nan
    middle = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (n - 1))
    half = student(n - 1) * spread / n**0.5
    return middle, middle - half, middle + half


def mean_and_bootstrap(values: Sequence[float], resamples: int = 10_000) -> tuple[float, float, float]:
    """Returns the mean and the percentile interval of its bootstrap: the same draws, counted instead of averaged."""
    n = len(values)
    draws = np.random.default_rng(0).integers(n, size=(resamples, n))
    counts = np.zeros((resamples, n))
    np.add.at(counts, (np.arange(resamples)[:, None], draws), 1)
    means = sorted((counts @ np.asarray(values) / n).tolist())
    return math.fsum(values) / n, _quantile(means, 0.025), _quantile(means, 0.975)


def power(x: Sequence[float], y: Sequence[float]) -> float:
    """Returns the slope of log y over log x, by the textbook's formula."""
    u, v = [math.log(a) for a in x], [math.log(b) for b in y]
    mu, mv = math.fsum(u) / len(u), math.fsum(v) / len(v)
    return math.fsum((a - mu) * (b - mv) for a, b in zip(u, v, strict=True)) / math.fsum((a - mu) ** 2 for a in u)


@cache
def student(freedom: int) -> float:
    """Returns the 97.5 % quantile of Student's t distribution, by integrating its density and bisecting."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def above_zero(t: float, parts: int = 2_000) -> float:
        width = t / parts  # Simpson's rule
        heights = [scale * (1 + (i * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(parts + 1)]
        return width / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))

    low, high = 0.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if above_zero(middle) < 0.475 else (low, middle)
    return (low + high) / 2


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
