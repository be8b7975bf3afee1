"""What the Doctor of training runs says: findings, and how it writes numbers and counts."""

from dataclasses import dataclass
from typing import Literal

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
    """What was seen, with its number."""
    advice: str
    """What to try."""


@dataclass(frozen=True)
class Diagnosis:
    """All findings, the gravest first, and what was looked at to come to them."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    """Each check with what it had before it, as a phrase."""
    unchecked: tuple[str, ...] = ()
    """What could not be checked, and why, as a phrase."""


def counted(count: int, what: str) -> str:
    """This many of them, in words: "1 head", "1,200 steps"."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def number(value: float) -> str:
    """Three digits of a number."""
    return f"{value:.3g}".replace("e-0", "e-") if value else "0"
