"""Comparisons as data: a metric in one cell minus the same in another, seed by seed, against what the claim allows.

An experiment lists its comparisons, and both its judgement and what "Prove it" computes again follow from the list: the
first by intervals.py, the second by recount.py. A budget that leaves out a level leaves out its comparisons.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transformer.experiments.intervals import Interval, t_interval
from transformer.experiments.outcome import Finding, Verdict, finding
from transformer.experiments.recount import apart
from transformer.experiments.results import Cell, Results


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

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that it needs."""
        return (self.first, self.second, *(self.beside or ()))

    def finding(self, results: Results) -> Finding:
        """Returns the mean difference with its interval."""
        gaps = results.apart(self.metric, self.first, self.second)
        if self.beside is not None:
            others = results.apart(self.metric, *self.beside)
            gaps = {seed: gap - others[seed] for seed, gap in gaps.items() if seed in others}
        interval = self.interval(list(gaps.values()))
        return finding(self.name, interval, group=self.group, unit=self.unit, least=self.least, most=self.most)

    def again(self, rows: Sequence[Mapping]) -> list[float]:
        """Returns the differences, seed by seed, from the rows of the file: see `recount`."""
        gaps = [apart(rows, self.metric, *pair) for pair in (self.cells[:2], self.cells[2:]) if pair]
        return [gaps[0][s] - sum(g[s] for g in gaps[1:]) for s in gaps[0] if all(s in g for g in gaps)]


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
