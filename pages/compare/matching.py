"""Two at once: what stands side by side, and how cells of one side and of the other come to stand for the same tokens.

No Streamlit here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from jaxtyping import Bool, Float
from numpy import ndarray

from pages.compare.choices import Two
from pages.compare.loading import Side, read_same, same_words
from pages.shared import wording
from pages.shared.context import sentence
from transformer.analysis.comparison.head_matching import Matching, Place
from transformer.inspection.token_alignment import Aligned, align
from transformer.lab import Attention, AttentionKind

Along = tuple[tuple[int, int], ...]
"""Positions of both sides that stand for one another."""


@dataclass(frozen=True)
class Pair:
    """Both sides, and how their outputs align."""

    first: Side
    second: Side
    two: Two
    aligned: Aligned
    """Tokens of both outputs, one across from the other."""

    @property
    def labels(self) -> tuple[str, str]:
        """What the two are called beside their outputs."""
        return (self.first.name, self.second.name) if self.two == "models" else ("first", "second")

    @property
    def differing(self) -> tuple[tuple[int | None, int | None], ...]:
        """The places at which the two outputs have not the same token."""
        a, b = self.first.seen.target_tokens, self.second.seen.target_tokens
        return tuple((i, j) for i, j in self.aligned if i is None or j is None or a[i] != b[j])


@dataclass(frozen=True)
class Compared:
    """Attention of both sides with the same tokens at rows and columns."""

    first: Attention
    second: Attention
    how: Literal["own", "forced", "aligned"]
    """Both sides' own decodings, both reading the first's output, or own decodings of which some positions align."""
    note: str
    rows: Along = ()
    """Of aligned ones, the positions that are kept."""
    columns: Along = ()

    def cut(self, first: Attention, second: Attention) -> tuple[Attention, Attention]:
        """The same rows and columns of other recordings of the same passes."""
        if self.how != "aligned":
            return first, second
        return _cut(first, second, self.rows, self.columns)


@dataclass(frozen=True)
class Facing:
    """One head of each side beside the other."""

    pair: Pair
    kind: AttentionKind
    here: Place
    there: Place
    compared: Compared | str
    """Or why the two cannot be compared cell by cell."""
    matching: Matching | str
    """Or why there is nothing to match."""

    @property
    def sides(self) -> tuple[tuple[str, Side, Place], ...]:
        """Left and right."""
        return ("left", self.pair.first, self.here), ("right", self.pair.second, self.there)

    @property
    def weights(self) -> tuple[Float[ndarray, "query key"], Float[ndarray, "query key"]]:
        """Both heads' weights, cell by cell for the same tokens."""
        assert isinstance(self.compared, Compared), "these can be compared"
        return self.compared.first.weights[self.here], self.compared.second.weights[self.there]

    @property
    def mask(self) -> Bool[ndarray, "query key"]:
        """The cells that either pass allowed."""
        assert isinstance(self.compared, Compared), "these can be compared"
        return self.compared.first.mask[self.here[0]] | self.compared.second.mask[self.there[0]]


def compare_sides(pair: Pair, kind: AttentionKind) -> Compared | str:
    """Attention of both sides that can be compared cell by cell, or why there is none."""
    first, second = pair.first, pair.second
    mine, theirs = first.seen.attention(kind), second.seen.attention(kind)
    if pair.two == "sentences":
        return _on_common_tokens(mine, theirs)
    if (mine.queries, mine.keys) == (theirs.queries, theirs.keys):
        return Compared(mine, theirs, "own", "both have the same tokens")
    if not same_words(first.lab, second.lab):
        return (
            f"{first.name} and {second.name} cut sentences into different tokens, so a row or a column of one does not "
            "stand for one of the other."
        )
    note = f"both read the output of {wording.plain(first.name)} (teacher-forced)"
    try:
        return Compared(read_same(first, first, kind), read_same(first, second, kind), "forced", note)
    except ValueError as error:
        return wording.plain(sentence(str(error)))


def _on_common_tokens(mine: Attention, theirs: Attention) -> Compared | str:
    rows, columns = _across(mine.queries, theirs.queries), _across(mine.keys, theirs.keys)
    for pairs, a, b, what in (
        (rows, mine.queries, theirs.queries, "rows"),
        (columns, mine.keys, theirs.keys, "columns"),
    ):
        if 2 * len(pairs) < max(len(a), len(b)):
            return (
                f"Only {len(pairs)} of {max(len(a), len(b))} {what} have a token across from them in the other "
                "sentence: too few to compare cell by cell."
            )
    left_out = len(mine.queries) + len(theirs.queries) - 2 * len(rows)
    left_out += len(mine.keys) + len(theirs.keys) - 2 * len(columns)
    note = "rows and columns aligned by the fewest edits" + f", {left_out} left out" * (left_out > 0)
    return Compared(*_cut(mine, theirs, rows, columns), "aligned", note, rows, columns)


def _across(a: Sequence[str], b: Sequence[str]) -> Along:
    return tuple((i, j) for i, j in align(a, b) if i is not None and j is not None)


def _cut(mine: Attention, theirs: Attention, rows: Along, columns: Along) -> tuple[Attention, Attention]:
    """Both without what has nothing across from it, under names of both where they differ."""
    queries = tuple(_both(mine.queries[i], theirs.queries[j]) for i, j in rows)
    keys = tuple(_both(mine.keys[i], theirs.keys[j]) for i, j in columns)
    kept = [
        replace(
            attention,
            weights=attention.weights[:, :, [row[side] for row in rows]][..., [column[side] for column in columns]],
            mask=attention.mask[:, [row[side] for row in rows]][..., [column[side] for column in columns]],
            queries=queries,
            keys=keys,
        )
        for side, attention in enumerate((mine, theirs))
    ]
    return kept[0], kept[1]


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a}→{b.lstrip('▁')}"
