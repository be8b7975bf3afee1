"""Comparisons as data: a metric in one cell minus the same in another, seed by seed, against what the claim allows.

An experiment lists its comparisons, and both its judgement and what "Prove it" computes again follow from the list: the
first by intervals.py, the second by recount.py. A budget that leaves out a level leaves out its comparisons.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from transformer.experiments.intervals import Interval, t_interval
from transformer.experiments.outcome import Finding, Verdict, finding
from transformer.experiments.recount import chosen, column
from transformer.experiments.results import Cell, Level, Results


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A metric in the cell `first` minus the same in the cell `second`; the claim allows least <= that <= most."""

    name: str
    group: str
    """The part of the claim to which it belongs."""
    metric: str
    unit: str
    """What the difference is, as the title of an axis."""
    first: Cell
    second: Cell
    beside: tuple[Cell, Cell] | None = None
    """Two more cells, whose difference is subtracted from that of these two."""
    least: float = -math.inf
    most: float = math.inf
    interval: Callable[[Sequence[float]], Interval] = t_interval
    """Makes the interval of the differences."""
    best_of: str = ""
    """A factor that the cells leave open: with each seed a cell has the level at which the other seeds have the least
    mean of `by`. So no cell is measured at a level that suits another, nor by the seed that chose it."""
    by: str = "validation_loss"

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that it needs."""
        return (self.first, self.second, *(self.beside or ()))

    def finding(self, results: Results) -> Finding:
        """Returns the mean difference with its interval."""
        gaps = _minus(self._measured(results, self.first), self._measured(results, self.second))
        if self.beside is not None:
            gaps = _minus(gaps, _minus(*(self._measured(results, cell) for cell in self.beside)))
        interval = self.interval(list(gaps.values()))
        return finding(self.name, interval, group=self.group, unit=self.unit, least=self.least, most=self.most)

    def again(self, rows: Sequence[Mapping]) -> list[float]:
        """Returns the differences, seed by seed, from the rows of the file: see `recount`."""
        found = [
            chosen(rows, self.metric, self.by, self.best_of, **cell)
            if self.best_of
            else column(rows, self.metric, **cell)
            for cell in self.cells
        ]
        signs = (1, -1, -1, 1)[: len(found)]
        seeds = [seed for seed in found[0] if all(seed in each for each in found)]
        return [math.fsum(sign * each[seed] for sign, each in zip(signs, found, strict=True)) for seed in seeds]

    def _measured(self, results: Results, cell: Cell) -> dict[int, float]:
        if not self.best_of:
            return results.by_seed(self.metric, **cell)
        at = {level: cell | {self.best_of: level} for level in results.levels(self.best_of)}
        own = {level: results.by_seed(self.metric, **each) for level, each in at.items()}
        judged = {level: found for level, each in at.items() if (found := results.by_seed(self.by, **each))}
        return {seed: own[level][seed] for seed, level in _best(judged, results.seeds) if seed in own[level]}


def _minus(first: Mapping[int, float], second: Mapping[int, float]) -> dict[int, float]:
    return {seed: value - second[seed] for seed, value in first.items() if seed in second}


def _best(judged: Mapping[Level, Mapping[int, float]], seeds: Sequence[int]) -> Iterator[tuple[int, Level]]:
    """Yields with each seed that has all levels the one whose mean is the least over the other seeds."""
    for seed in seeds:
        if all(seed in of_seed and len(of_seed) > 1 for of_seed in judged.values()):
            yield seed, min(judged, key=lambda level: fmean(v for s, v in judged[level].items() if s != seed))


def findings_of(comparisons: Sequence[Comparison], results: Results) -> tuple[Finding, ...]:
    """Returns the finding of each comparison between levels that were measured."""
    return tuple(each.finding(results) for each in _among(comparisons, results.levels))


def judge_by(
    comparisons: Sequence[Comparison], sentence: Callable[[Results], str], *, primary: str
) -> Callable[[Results], Verdict]:
    """Returns the judgement by these comparisons, told in a sentence; the one named `primary` decides."""

    def judge(results: Results) -> Verdict:
        return Verdict(findings=findings_of(comparisons, results), primary=primary, sentence=sentence(results))

    return judge


def again_by(comparisons: Sequence[Comparison]) -> Callable[[Sequence[Mapping]], dict[str, list[float]]]:
    """Returns what reads the differences of these comparisons again from the rows of the file: see `recount`."""

    def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
        measured = _among(comparisons, lambda factor: {row[factor] for row in rows})
        return {each.name: each.again(rows) for each in measured}

    return again


def _among(comparisons: Sequence[Comparison], levels: Callable[[str], Collection[object]]) -> Iterator[Comparison]:
    for each in comparisons:
        if all(level in levels(factor) for cell in each.cells for factor, level in cell.items()):
            yield each
