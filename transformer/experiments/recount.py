"""The statistics of experiments computed again, for "Prove it": plain loops that share no code with intervals.py."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import numpy as np


def column(rows: Sequence[Mapping], metric: str, **where: object) -> dict[int, float]:
    """Returns a metric by seed in the rows of the file with these levels."""
    return {
        row["seed"]: row[metric]
        for row in rows
        if row.get(metric) is not None and all(row[name] == level for name, level in where.items())
    }


def chosen(rows: Sequence[Mapping], metric: str, by: str, factor: str, **where: object) -> dict[int, float]:
    """Returns a metric by seed at the level of a factor where the other seeds add up to the least of `by`."""
    levels = sorted({row[factor] for row in rows if column([row], by, **where)})
    at = [where | {factor: level} for level in levels]
    both = [(column(rows, by, **each), column(rows, metric, **each)) for each in at]
    found = {}
    for seed in sorted({row["seed"] for row in rows}):
        sums = [
            (sum(value for other, value in judged.items() if other != seed), own[seed])
            for judged, own in both
            if seed in judged and seed in own and len(judged) > 1
        ]
        if len(sums) == len(levels):
            found[seed] = min(sums)[1]
    return found


def best_mean(rows: Sequence[Mapping], metric: str, factor: str, **where: object) -> float:
    """Returns the largest mean of a metric over the levels of a factor, or the one there is; NaN without rows."""
    sums: dict[object, list[float]] = {}
    for row in rows:
        if row.get(metric) is not None and all(row[name] == level for name, level in where.items()):
            sums.setdefault(row[factor] if factor else None, []).append(row[metric])
    return max((math.fsum(values) / len(values) for values in sums.values()), default=math.nan)


def mean_and_ends(values: Sequence[float], method: str) -> tuple[float, float, float]:
    """Returns the mean and the ends of the 95 % interval that is made by this method."""
    n = len(values)
    middle = math.fsum(values) / n if n else math.nan
    if method == "exact":
        return middle, min(values), max(values)
    if n < 3:
        return middle, math.nan, math.nan
    if method == "bootstrap":
        means = _drawn_means(tuple(values))
        return middle, _quantile(means, 0.025), _quantile(means, 0.975)
    half = student(n - 1) * _spread(values) / n**0.5
    return middle, middle - half, middle + half


def p_value(values: Sequence[float], method: str, least: float, most: float) -> float:
    """Returns the share beyond the border of what is allowed that decides, on both sides together."""
    middle, low, _ = mean_and_ends(values, method)
    if math.isnan(low):
        return math.nan
    borders = (
        [least] if middle < least else [most] if middle > most else [b for b in (least, most) if abs(b) < math.inf]
    )
    return max([_p_value(values, method, middle, border) for border in borders], default=0.0)


def _p_value(values: Sequence[float], method: str, middle: float, border: float) -> float:
    if method == "exact":
        return 1.0 if min(values) <= border <= max(values) else 0.0
    if method == "bootstrap":
        means = _drawn_means(tuple(values))
        beyond = min(bisect_right(means, border), len(means) - bisect_left(means, border))
        return min(1.0, 2 * max(beyond, 1) / len(means))
    error = _spread(values) / len(values) ** 0.5
    if error == 0:
        return 1.0 if border == middle else 0.0
    return 1 - 2 * _above_zero(abs(middle - border) / error, len(values) - 1)


def holm(p_values: Mapping[str, float], level: float = 0.05) -> set[str]:
    """Returns the tests whose adjusted p value, as Holm defines it, is at most this level."""
    known = {name: p for name, p in p_values.items() if not math.isnan(p)}
    rank = {name: sum(other < p for other in known.values()) for name, p in known.items()}
    adjusted = {
        name: max((len(known) - rank[o]) * known[o] for o in known if known[o] <= p) for name, p in known.items()
    }
    return {name for name, p in adjusted.items() if p <= level}


def _spread(values: Sequence[float]) -> float:
    middle = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


@lru_cache(maxsize=64)
def _drawn_means(values: tuple[float, ...], resamples: int = 200_000) -> list[float]:
    """Returns the means of the bootstrap's samples in order: the same draws, counted instead of averaged."""
    n = len(values)
    draws = np.random.default_rng(0).integers(n, size=(resamples, n))
    counts = np.zeros((resamples, n), dtype=np.int16)
    np.add.at(counts, (np.arange(resamples)[:, None], draws), 1)
    return sorted((counts @ np.asarray(values) / n).tolist())


def power(x: Sequence[float], y: Sequence[float]) -> float:
    """Returns the slope of log y over log x, by the textbook's formula."""
    u, v = [math.log(a) for a in x], [math.log(b) for b in y]
    mu, mv = math.fsum(u) / len(u), math.fsum(v) / len(v)
    return math.fsum((a - mu) * (b - mv) for a, b in zip(u, v, strict=True)) / math.fsum((a - mu) ** 2 for a in u)


@cache
def student(freedom: int) -> float:
    """Returns the 97.5 % quantile of Student's t distribution, by integrating its density and bisecting."""
    low, high = 0.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _above_zero(middle, freedom) < 0.475 else (low, middle)
    return (low + high) / 2


def _above_zero(t: float, freedom: int, parts: int = 2_000) -> float:
    """Returns the share of Student's distribution between 0 and t, by Simpson's rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    width = t / parts
    heights = [scale * (1 + (i * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(parts + 1)]
    return width / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
