"""The figures of the paper lab: what an experiment measured, and its findings against what the claim allows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import plotly.graph_objects as go
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.experiments import recount
from transformer.experiments.intervals import t_interval
from transformer.experiments.outcome import Finding, Outcome, Verdict
from transformer.experiments.paper import find_experiment
from transformer.experiments.recount import column, mean_and_ends
from transformer.experiments.results import Level, Results, content_of
from transformer.figures.experiments import Curve, Estimates, claims_figure, curves_figure, findings_figure
from transformer.figures.tables import column_table, numbered
from transformer.views.view import OF_FIGURE, Origin

_READ = "the file's rows read again"
_ENDS = ("mean", "low 95 %", "high 95 %")


@dataclass(frozen=True)
class Measured:
    """The results of an experiment."""

    results: Results

    @property
    def origin(self) -> Origin:
        """Reads the results."""
        name, budget = self.results.experiment, self.results.budget
        call = f"load_results({name!r})" if self.results.shipped else f"load_results({name!r}, {budget!r})"
        caption = f"{name}, {'shipped' if self.results.shipped else budget}"
        imports = ("from transformer.experiments.results import load_results",)
        return Origin(name, caption, imports, (f"results = {call}",))


@dataclass(frozen=True)
class AllMeasured:
    """The shipped results of several experiments."""

    each: tuple[Results, ...]

    @property
    def origin(self) -> Origin:
        """Reads the results."""
        imports = ("from transformer.experiments.results import load_results",)
        names = tuple(results.experiment for results in self.each)
        lines = (f"names = {names!r}", "each = tuple(map(load_results, names))")
        return Origin("paper-lab", "Paper lab, shipped", imports, lines)


@dataclass(frozen=True)
class CurvesData:
    """A metric over a factor."""

    curves: tuple[Curve, ...]
    names: tuple[str, ...]
    """All levels of the lines' factor, in the order of their colours."""
    ticks: tuple[str, ...]
    """The levels of the factor across, as text, from left to right."""
    x_label: str
    y_label: str
    by_label: str

    @property
    def joined(self) -> bool:
        """True if x is a number, so that lines between its levels say something."""
        return all(tick.replace(",", "").replace(".", "").isdecimal() for tick in self.ticks)


@dataclass(frozen=True, kw_only=True)
class ExperimentCurves:
    """A metric of an experiment over one factor, a line for each level of another: means and t intervals."""

    metric: str
    x: str
    by: str
    where: tuple[tuple[str, Level], ...] = ()
    """The levels of the other factors."""
    log_x: bool = field(default=False, metadata=OF_FIGURE)
    log_y: bool = field(default=False, metadata=OF_FIGURE)
    name = "{metric}-over-{x}"
    explained = (
        "Each point is a mean over several runs that differ in their seed alone, or are repeated timings; its whiskers "
        "are the 95 % interval of that mean. Where the whiskers of two lines overlap, the difference may still be "
        "clear, because runs are compared seed by seed: the findings below say so."
    )

    def data(self, results: Results) -> CurvesData:
        """The mean of the seeds in each cell; ValueError where nothing is measured there."""
        experiment = find_experiment(results.experiment)
        across, lines = results.levels(self.x), results.levels(self.by)
        places = _places(across)
        curves = []
        for level in lines:
            found = [results.by_seed(self.metric, **{self.by: level, self.x: at}, **dict(self.where)) for at in across]
            kept = [place for place, values in enumerate(found) if values and self._meets(level, across[place])]
            intervals = [t_interval(list(found[place].values())) for place in kept]
            if kept:
                rows = np.array([[each.estimate, each.low, each.high] for each in intervals]).T
                curves.append(Curve(_text(level), places[kept], *rows))
        if not curves:
            raise ValueError(f"nothing is measured yet of {experiment.metric(self.metric).label} there")
        shown = {float(x) for curve in curves for x in curve.x}
        return CurvesData(
            curves=tuple(curves),
            names=tuple(map(_text, lines)),
            ticks=tuple(_text(across[at]) for at in np.argsort(places) if float(places[at]) in shown),
            x_label=experiment.factor(self.x).label,
            y_label=experiment.metric(self.metric).label,
            by_label=experiment.factor(self.by).label,
        )

    def _meets(self, line: Level, at: Level) -> bool:
        """Tells whether a line has a point there: where it is of the factor across, at its own level alone."""
        return self.by != self.x or line == at

    def figure(self, data: CurvesData, *, dark: bool = False) -> go.Figure:
        """A line with whiskers for each level."""
        return curves_figure(
            data.curves,
            data.names,
            x_label=data.x_label,
            y_label=data.y_label,
            by_label=data.by_label,
            ticks=data.ticks,
            joined=data.joined,
            log_x=self.log_x,
            log_y=self.log_y,
            dark=dark,
        )

    def tables(self, data: CurvesData) -> tuple[DataFrame, ...]:
        """The means and the ends of their intervals, a table for each line."""
        return tuple(
            column_table(
                curve.name,
                numbered([f"{data.x_label} {x:g}" for x in curve.x]),
                dict(zip(_ENDS, (curve.mean, curve.low, curve.high), strict=True)),
            )
            for curve in data.curves
        )

    def checks(self, results: Results, data: CurvesData) -> Iterator[Check]:
        """Averages the rows of the file again, and integrates Student's density for the intervals."""
        rows = content_of(results)
        levels = list(dict.fromkeys(row[self.x] for row in rows))
        places = dict(zip(levels, _places(tuple(levels)), strict=True))
        x, means, ends = [], [], []
        for curve in data.curves:
            (line,) = {row[self.by] for row in rows if _text(row[self.by]) == curve.name}
            for level in levels:
                where = {self.by: line, self.x: level} | dict(self.where)
                if self.by == self.x and line != level:
                    continue
                if values := list(column(rows, self.metric, **where).values()):
                    middle, low, high = mean_and_ends(values, "t")
                    x.append(places[level])
                    means.append(middle)
                    ends += [low, high]
        yield agree("Each point stands over its own level", _joined(data, "x"), x, 0, _READ)
        yield _close("Each point is the mean of its seeds", _joined(data, "mean"), means, f"{_READ}, averaged")
        shown = np.column_stack((_joined(data, "low"), _joined(data, "high"))).ravel()
        yield _close("Whiskers are 95 % t intervals", shown, ends, "Student's density integrated and inverted")


@dataclass(frozen=True)
class FindingsData:
    """The findings of an experiment, a panel for each unit."""

    panels: tuple[Estimates, ...]
    """The first row of the first is the finding that decides."""


@dataclass(frozen=True, kw_only=True)
class ExperimentFindings:
    """Each number that an experiment holds against the claim, with its interval and what the claim allows."""

    name = "findings"
    explained = (
        "Each row is one number: the dot is what was measured, the whiskers its 95 % interval, the shaded range what "
        "the claim allows. The first row, in bold, decides alone: it *holds here* if its whole interval lies in that "
        "range, does *not hold here* if it lies outside. The others explore. Of many numbers one lies outside by "
        "chance, so each of them must be the clearer, the more there are (Holm's correction)."
    )

    def data(self, results: Results) -> FindingsData:
        """The findings of the experiment's own rule; ValueError where there are too few results."""
        verdict = find_experiment(results.experiment).verdict(results)
        findings = sorted(verdict.findings, key=lambda each: each.name != verdict.primary)
        by_unit = {unit: [each for each in findings if each.unit == unit] for unit in (each.unit for each in findings)}
        return FindingsData(
            tuple(_estimates(unit, own, [verdict.outcomes[each.name] for each in own]) for unit, own in by_unit.items())
        )

    def figure(self, data: FindingsData, *, dark: bool = False) -> go.Figure:
        """A row for each finding over the range that the claim allows."""
        return findings_figure(data.panels, list(Outcome), dark=dark)

    def tables(self, data: FindingsData) -> tuple[DataFrame, ...]:
        """Each finding: estimate, interval, what is allowed."""
        return tuple(column_table(each.unit, each.names, _columns(each)) for each in data.panels)

    def checks(self, results: Results, data: FindingsData) -> Iterator[Check]:
        """Computes each finding from the file's rows by other code, and its outcome from that."""
        verdict, outcomes = _recounted(results)
        by_name = {each.name: each for each in verdict.findings}
        names = [name for each in data.panels for name in each.names]
        yield from _checks(data.panels, [by_name[name] for name in names], [outcomes[name] for name in names])
        first = [names.index(verdict.primary) if verdict.primary in names else 0]
        yield agree("The finding that decides stands first", [0], first, 0, "asked again")


@dataclass(frozen=True)
class ClaimsData:
    """The deciding finding of each experiment."""

    titles: tuple[str, ...]
    """The titles of the experiments."""
    units: tuple[str, ...]
    """What each finding is a number of."""
    rows: Estimates


@dataclass(frozen=True, kw_only=True)
class Claims:
    """Each experiment with the one number that decides it, against what the claim allows."""

    name = "claims"
    explained = (
        "A row for each claim of the paper that is tested here, with the one number that decides it. The line in the "
        "middle is the border of what the claim allows, the shaded side is what it allows. The dot is what was "
        "measured, the whiskers its 95 % interval: the claim *holds here* if all of it lies on the shaded side. Every "
        "row has a scale of its own, so compare a row with the line, not with other rows."
    )

    def data(self, each: tuple[Results, ...]) -> ClaimsData:
        """The deciding findings, in the order of the results; ValueError where one is not measured."""
        experiments = [find_experiment(results.experiment) for results in each]
        verdicts = [experiment.verdict(results) for experiment, results in zip(experiments, each, strict=True)]
        if missing := [e.name for e, verdict in zip(experiments, verdicts, strict=True) if verdict.deciding is None]:
            raise ValueError(f"what decides {missing[0]} is not measured")
        found = [verdict.deciding for verdict in verdicts if verdict.deciding is not None]
        titles = tuple(experiment.title for experiment in experiments)
        return ClaimsData(
            titles, tuple(finding.unit for finding in found), _estimates("", found, [each.outcome for each in verdicts])
        )

    def figure(self, data: ClaimsData, *, dark: bool = False) -> go.Figure:
        """A row for each experiment."""
        return claims_figure(data.titles, data.units, data.rows, list(Outcome), dark=dark)

    def tables(self, data: ClaimsData) -> tuple[DataFrame, ...]:
        """Each claim: the finding that decides, its interval, what is allowed."""
        return (column_table("claims", data.titles, _columns(data.rows)),)

    def checks(self, each: tuple[Results, ...], data: ClaimsData) -> Iterator[Check]:
        """Computes each deciding finding from its file's rows by other code, and its outcome from that."""
        findings, outcomes = [], []
        for results in each:
            verdict, found = _recounted(results)
            if verdict.deciding is not None:
                findings.append(verdict.deciding)
                outcomes.append(found[verdict.primary])
        yield from _checks((data.rows,), findings, outcomes)


def _estimates(unit: str, findings: Sequence[Finding], outcomes: Sequence[Outcome]) -> Estimates:
    numbers = np.array([[each.estimate, each.low, each.high, each.least, each.most] for each in findings]).T
    told = tuple(list(Outcome).index(each) for each in outcomes)
    return Estimates(unit, tuple(each.name for each in findings), *numbers, told)


def _columns(each: Estimates) -> dict[str, ndarray]:
    named = {"estimate": each.estimate, "low": each.low, "high": each.high}
    return named | {"least allowed": each.least, "most allowed": each.most}


def _recounted(results: Results) -> tuple[Verdict, dict[str, int]]:
    """Returns the verdict with its intervals made by other code from the rows of the file, and the outcomes by it."""
    experiment = find_experiment(results.experiment)
    rows = content_of(results)
    verdict, values = experiment.verdict(results), experiment.again(rows)
    findings, p_values = [], {}
    for each in verdict.findings:
        estimate, low, high = recount.mean_and_ends(values[each.name], each.method)
        findings.append(replace(each, estimate=estimate, low=low, high=high))
        if each.name != verdict.primary:
            p_values[each.name] = recount.p_value(values[each.name], each.method, each.least, each.most)
    told = recount.holm(p_values) | {verdict.primary}
    outcomes = {each.name: _outcome(each) if each.name in told else 2 for each in findings}
    if experiment.competence is not None and experiment.competence.again(rows):
        outcomes[verdict.primary] = 3
    return replace(verdict, findings=tuple(findings)), outcomes


def _checks(panels: Sequence[Estimates], again: Sequence[Finding], outcomes: Sequence[int]) -> Iterator[Check]:
    """Compares what is shown with the findings that were computed again, in the same order."""
    shown = np.array([row for each in panels for row in zip(each.estimate, each.low, each.high, strict=True)])
    found = np.array([[each.estimate, each.low, each.high] for each in again])
    yield _close("Each estimate and interval, computed by other code", shown, found, _READ)
    bounds = [row for each in panels for row in zip(each.least, each.most, strict=True)]
    ruled = [(each.least, each.most) for each in again]
    yield agree("What is allowed is what the rule says", _finite(bounds), _finite(ruled), 0, "asked again")
    told = [index for each in panels for index in each.outcome]
    claim = "Inside the range holds, outside fails; across, after Holm's correction or not learned cannot be told"
    yield agree(claim, told, outcomes, 0, "decided again from the recomputed intervals and p values")


def _outcome(each: Finding) -> int:
    known = not np.isnan([each.estimate, each.low, each.high]).any()
    inside, outside = each.low >= each.least and each.high <= each.most, each.high < each.least or each.low > each.most
    return 0 if known and inside else 1 if known and outside else 2


def _finite(bounds: Sequence[tuple[float, float]]) -> ndarray:
    """Returns bounds that can be subtracted: one that is open is a number that no finding reaches."""
    return np.clip(np.asarray(bounds, dtype=float), -1e12, 1e12)


def _places(levels: tuple[Level, ...]) -> ndarray:
    """Returns where levels stand on the axis: numbers at themselves, words side by side."""
    if all(isinstance(level, int | float) for level in levels):
        return np.array(levels, dtype=float)
    return np.arange(len(levels), dtype=float)


def _text(level: Level) -> str:
    return level if isinstance(level, str) else f"{level:,g}"


def _joined(data: CurvesData, name: str) -> ndarray:
    return np.concatenate([getattr(curve, name) for curve in data.curves])


def _close(claim: str, shown: object, again: object, how: str) -> Check:
    """Returns the check that numbers of any size agree: differences are in units of the number itself, or of 1."""
    a, b = np.asarray(shown, dtype=float), np.asarray(again, dtype=float)
    unit = np.maximum(1.0, np.abs(np.nan_to_num(b))) if a.shape == b.shape else 1.0
    return agree(claim, a / unit, b / unit, 1e-4, how)
