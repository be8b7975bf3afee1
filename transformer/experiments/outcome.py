"""The verdict on a claim: what was found, with its interval, against what the claim allows.

A finding holds if its whole interval lies inside what is allowed, fails if its whole interval lies outside, and cannot
be told else. One finding, which the experiment names, makes the verdict: of many, one lies outside by chance sooner or
later. The others explore: they count as told only after Holm's correction for their number (Holm 1979).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from transformer.experiments.intervals import Interval, Method


class Outcome(StrEnum):
    """The answer of a verdict."""

    HOLDS = "holds here"
    FAILS = "does not hold here"
    UNKNOWN = "cannot be told at this size"
    UNLEARNED = "cannot be told: not learned within this budget"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A number that is held against what a claim allows."""

    name: str
    group: str
    """The part of the claim to which it belongs."""
    unit: str
    """What the number is, as the title of an axis: findings of one unit are drawn together."""
    estimate: float
    low: float
    high: float
    interval: str
    """What the interval is, such as "95 % t interval over 5 seeds"."""
    method: Method = "t"
    p: float = math.nan
    """The level at which the interval would end at the nearest border of what is allowed; NaN without an interval."""
    settled: bool = True
    """False if other draws of the bootstrap could change the outcome."""
    smallest: float = math.nan
    """The smallest distance from a border that an experiment of this size tells in four of five cases."""
    least: float = -math.inf
    most: float = math.inf
    """The claim allows least <= number <= most."""

    @property
    def allowed(self) -> str:
        """What the claim allows, in words."""
        return allowed_text(self.least, self.most)

    @property
    def outcome(self) -> Outcome:
        """The outcome of this finding alone."""
        if math.isnan(self.estimate) or math.isnan(self.low) or math.isnan(self.high):
            return Outcome.UNKNOWN
        if self.least <= self.low and self.high <= self.most:
            return Outcome.HOLDS
        if self.high < self.least or self.low > self.most:
            return Outcome.FAILS
        return Outcome.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The findings of an experiment and what they mean together."""

    findings: tuple[Finding, ...]
    primary: str
    """The name of the finding that alone makes the verdict."""
    sentence: str
    """The result in plain words, with its most important numbers."""
    unlearned: Mapping[str, float] = field(default_factory=dict)
    """The arms of the deciding finding that did not learn enough to be compared, and how far each came."""

    @property
    def deciding(self) -> Finding | None:
        """The finding that makes the verdict; None where a small budget leaves it out."""
        return next((each for each in self.findings if each.name == self.primary), None)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the deciding finding, which stays open while an arm of it has not learned."""
        if self.deciding is None:
            return Outcome.UNKNOWN
        return Outcome.UNLEARNED if self.unlearned else self.deciding.outcome

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of each finding: that of the verdict for the one that decides, and see `outcomes_of`."""
        return {
            name: self.outcome if name == self.primary else outcome
            for name, outcome in outcomes_of(self.findings, self.primary).items()
        }

    @property
    def groups(self) -> dict[str, Outcome]:
        """The outcome of each part of the claim."""
        names, outcomes = dict.fromkeys(finding.group for finding in self.findings), self.outcomes
        return {name: together([outcomes[each.name] for each in self.findings if each.group == name]) for name in names}


def allowed_text(least: float, most: float) -> str:
    """Returns a range in words: "at least 0", "0.5 to 2"."""
    if math.isinf(least):
        return f"at most {most:g}"
    return f"at least {least:g}" if math.isinf(most) else f"{least:g} to {most:g}"


def outcomes_of(findings: Sequence[Finding], primary: str) -> dict[str, Outcome]:
    """Returns the outcome of each finding: the primary one's own, the others' as Holm's correction leaves it."""
    others = [each for each in findings if each.name != primary and not math.isnan(each.p)]
    told = dict(zip((each.name for each in others), holm([each.p for each in others]), strict=True))
    return {
        each.name: each.outcome if each.name == primary or told.get(each.name) else Outcome.UNKNOWN for each in findings
    }


def holm(p_values: Sequence[float], level: float = 0.05) -> list[bool]:
    """Returns which of several tests are told at this level for all together: the smallest p value is held against the
    level over their number, the next against the level over one less, until one is too large."""
    told = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > level / (len(p_values) - rank):
            break
        told[index] = True
    return told


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Returns the outcome of several: one of models that have not learned leaves all open, one that fails is enough to
    fail, one that is open to stay open."""
    found = set(outcomes)
    if Outcome.UNLEARNED in found:
        return Outcome.UNLEARNED
    if Outcome.FAILS in found:
        return Outcome.FAILS
    return Outcome.HOLDS if found == {Outcome.HOLDS} else Outcome.UNKNOWN


def finding(
    name: str,
    interval: Interval,
    *,
    group: str,
    unit: str,
    least: float = -math.inf,
    most: float = math.inf,
) -> Finding:
    """Returns the finding of an interval against what the claim allows."""
    return Finding(
        name=name,
        group=group,
        unit=unit,
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        interval=interval.name,
        method=interval.method,
        p=(p := _p_value(interval, least, most)),
        settled=interval.is_settled(p),
        smallest=interval.smallest,
        least=least,
        most=most,
    )


def _p_value(interval: Interval, least: float, most: float) -> float:
    """Returns the p value at the border that the interval reaches first, of those that decide its outcome."""
    if interval.estimate < least:
        return interval.p_value(least)
    if interval.estimate > most:
        return interval.p_value(most)
    return max((interval.p_value(border) for border in (least, most) if math.isfinite(border)), default=0.0)
