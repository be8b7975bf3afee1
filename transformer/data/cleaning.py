"""Pairs of sentences from rows: text made alike, and which rows are dropped, and why.

Not here: how rows are read from a file (pair_files.py), splits and tokenizers (corpora.py).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from transformer.text.pairs import Pair, clean_text, words

MAX_CHARACTERS = 500
"""Longest side of a pair that cleaning keeps."""
EXAMPLES_SHOWN = 3
"""Dropped rows that a report keeps for each reason."""
LINES_NAMED = 1_000
"""Numbers of lines that a report keeps for each reason."""
_SHOWN_CHARACTERS = 120

Reason = Literal["malformed", "empty", "too_long", "duplicate"]


class Malformed(NamedTuple):
    """A row without two sides."""

    text: str
    """Its beginning as it stands."""


Row = tuple[str, str] | Malformed
"""The two sides of a row, or the row as it stands where it has not two."""


@dataclass(frozen=True)
class CleaningReport:
    """Counts of a file's rows, kept and dropped. Each dropped row is counted once, under its first reason."""

    read: int
    kept: int
    dropped: Mapping[Reason, int]
    """The number of rows that each reason dropped, without reasons that dropped none. Malformed: rows without two
    columns, or that are not JSON with a source and a target. Empty: pairs with a side that has no word."""
    examples: Mapping[Reason, tuple[str, ...]] = field(default_factory=dict)
    """The first few dropped rows of each reason, cut short, the two sides with a tab between them."""
    layout: str = ""
    """How the file was read: "columns 2 (en) and 3 (fr) of 3, header line read"."""
    lines: Mapping[Reason, tuple[int, ...]] = field(default_factory=dict)
    """The numbers of the lines of the first LINES_NAMED dropped rows of each reason, where they have such."""

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {REASONS[reason]}" for reason, count in self.dropped.items())
        malformed = self.lines.get("malformed")
        parts = [
            self.layout,
            f"{self.kept:,} of {self.read:,} pairs kept{f': dropped {reasons}' if reasons else ''}",
            f"first malformed on line {malformed[0]:,}" if malformed else "",
        ]
        return "; ".join(part for part in parts if part)


REASONS: dict[Reason, str] = {
    "malformed": "malformed",
    "empty": "with an empty side",
    "too_long": "too long",
    "duplicate": "repeated",
}


def clean_pairs(rows: Iterable[Row], layout: str = "", lines: Sequence[int] = ()) -> tuple[list[Pair], CleaningReport]:
    """The usable pairs among these rows, in order, and what was dropped; `layout` says how they were read, and `lines`
    gives each row the number of its line.

    Text is normalised to NFC, and white space to single spaces. Dropped are rows without two sides, pairs with a side
    that has no word or more than MAX_CHARACTERS characters, and repeated pairs. Several translations of one source
    stay.
    """
    kept: dict[tuple[str, str], Pair] = {}
    read = 0
    counts = Counter[Reason]()
    examples: dict[Reason, list[str]] = {}
    named: dict[Reason, list[int]] = {}
    for row in rows:
        read += 1
        sides = None if isinstance(row, Malformed) else (_normalised(row[0]), _normalised(row[1]))
        reason = _fault(sides, kept)
        if reason is None:
            assert sides is not None and sides[0] is not None and sides[1] is not None, "_fault refuses such rows"
            kept[sides[0], sides[1]] = Pair(sides[0], sides[1])
            continue
        counts[reason] += 1
        if lines and counts[reason] <= LINES_NAMED:
            named.setdefault(reason, []).append(lines[read - 1])
        if len(shown := examples.setdefault(reason, [])) < EXAMPLES_SHOWN:
            shown.append(_shortened(row))
    dropped: dict[Reason, int] = {reason: counts[reason] for reason in REASONS if counts[reason]}
    frozen: dict[Reason, tuple[str, ...]] = {reason: tuple(shown) for reason, shown in examples.items()}
    numbers: dict[Reason, tuple[int, ...]] = {reason: tuple(found) for reason, found in named.items()}
    return list(kept.values()), CleaningReport(read, len(kept), dropped, frozen, layout, numbers)


def _fault(sides: tuple[str | None, str | None] | None, kept: Mapping[tuple[str, str], Pair]) -> Reason | None:
    if sides is None:
        return "malformed"
    source, target = sides
    if source is None or target is None or max(len(source), len(target)) > MAX_CHARACTERS:
        return "too_long"
    if not (words(source) and words(target)):
        return "empty"
    return "duplicate" if (source, target) in kept else None


def _normalised(text: str) -> str | None:
    """NFC with single spaces; None for what is too long whatever NFC makes of it (it joins three characters at most).

    Not normalised first: on a long run of combining marks that takes quadratic time.
    """
    if len(text) > 100 * MAX_CHARACTERS:
        return None
    text = " ".join(text.split())
    return None if len(text) > 3 * MAX_CHARACTERS else clean_text(text)


def _shortened(row: Row) -> str:
    return "\t".join(
        side if len(side) <= _SHOWN_CHARACTERS else f"{side[:_SHOWN_CHARACTERS]}…"
        for side in (row[:1] if isinstance(row, Malformed) else row)
    )
