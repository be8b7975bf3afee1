"""The findings of the Doctor of training runs, and how their numbers are written."""

from dataclasses import dataclass
from typing import Literal

from transformer.interventions.names import plural

Kind = Literal[
    "not_a_number",
    "divergence",
    "no_learning",
    "unsteady",
    "over_fitting",
    "plateau",
    "unfinished",
    "answer_seen",
    "all_wrong",
    "source_ignored",
    "vocabulary",
    "length",
    "dead_heads",
    "saturated_heads",
]
Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or may be."""

    kind: Kind
    severity: Severity
    sentence: str
    """The sign that was seen, with its number."""
    advice: str
    """The advice on what to try."""


@dataclass(frozen=True)
class Diagnosis:
    """All findings, the gravest first, and the checks that led to them."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    """The checks that were made, each with what it looked at, as a phrase."""
    unchecked: tuple[str, ...] = ()
    """The checks that could not be made, each with its reason, as a phrase."""


def counted(count: int, what: str) -> str:
    """Returns a count in words: "1 head", "1,200 steps"."""
    return f"{count:,} {plural(count, what)}"


def number(value: float) -> str:
    """Returns a number with three digits."""
    return f"{value:.3g}".replace("e-0", "e-") if value else "0"
