"""The verdict on a claim: what was found, with its interval, against what the claim allows.

A finding holds if its whole interval lies inside what is allowed, fails if its whole interval lies outside, and cannot
be told else. A verdict holds if all its findings do, and fails if one does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from transformer.experiments.intervals import Interval


class Outcome(StrEnum):
    """The three things that a verdict can say."""

    HOLDS = "holds here"
    FAILS = "does not hold here"
    UNKNOWN = "cannot be told at this size"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A number on which a verdict hangs."""

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
    sentence: str
    """The result in plain words, with its most important numbers."""

    @property
    def outcome(self) -> Outcome:
        """The outcome of all findings together."""
        return together(self.findings)

    @property
    def groups(self) -> dict[str, Outcome]:
        """The outcome of each part of the claim."""
        names = dict.fromkeys(finding.group for finding in self.findings)
        return {name: together([each for each in self.findings if each.group == name]) for name in names}


def allowed_text(least: float, most: float) -> str:
    """Returns a range in words: "at least 0", "0.5 to 2"."""
    if math.isinf(least):
        return f"at most {most:g}"
    return f"at least {least:g}" if math.isinf(most) else f"{least:g} to {most:g}"


def together(findings: Sequence[Finding]) -> Outcome:
    """Returns the outcome of several findings: one that fails is enough to fail, one that is open to stay open."""
    found = {finding.outcome for finding in findings}
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
        least=least,
        most=most,
    )
