"""Attention of two decodings on the same tokens at rows and columns, so that it can be compared cell by cell."""

from collections.abc import Sequence
from dataclasses import replace

from transformer.inspection.inspection import Attention
from transformer.inspection.token_alignment import Aligned, align

Along = tuple[tuple[int, int], ...]
"""Positions of both sides that stand for one another."""


def common_positions(a: Sequence[str], b: Sequence[str], what: str) -> Along:
    """Returns the positions of two sequences that align; ValueError where they are less than half of the longer one."""
    found = tuple((i, j) for i, j in align(a, b) if i is not None and j is not None)
    longer = max(len(a), len(b))
    if 2 * len(found) < longer:
        raise ValueError(
            f"only {len(found)} of {longer} {what} have a token across from them in the other sentence: too few to "
            "compare cell by cell"
        )
    return found


def cut(left: Attention, right: Attention, rows: Along, columns: Along) -> tuple[Attention, Attention]:
    """Returns both reduced to these rows and columns, labelled with both tokens where they differ."""
    queries = tuple(_both(left.queries[i], right.queries[j]) for i, j in rows)
    keys = tuple(_both(left.keys[i], right.keys[j]) for i, j in columns)
    first, second = (
        replace(
            attention,
            weights=attention.weights[:, :, [row[side] for row in rows]][..., [column[side] for column in columns]],
            mask=attention.mask[:, [row[side] for row in rows]][..., [column[side] for column in columns]],
            queries=queries,
            keys=keys,
        )
        for side, attention in enumerate((left, right))
    )
    return first, second


def whole_alignment(along: Along, n: int, m: int) -> Aligned:
    """Returns the alignment of two sequences of these lengths of which `along` has the positions that align."""
    found: list[tuple[int | None, int | None]] = []
    i = j = 0
    for row, column in (*along, (n, m)):
        found += [(at, None) for at in range(i, row)] + [(None, at) for at in range(j, column)]
        if (row, column) != (n, m):
            found.append((row, column))
        i, j = row + 1, column + 1
    return tuple(found)


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a}→{b.lstrip('▁')}"
