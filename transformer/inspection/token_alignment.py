"""Two sequences side by side: which element of one stands for which of the other, by the fewest edits."""

from collections.abc import Sequence

Aligned = tuple[tuple[int | None, int | None], ...]
"""Pairs of indices in order; None stands across from what only the other has."""


def edit_marks(a: Sequence[object], b: Sequence[object]) -> tuple[frozenset[int], frozenset[int]]:
    """The elements of both that the fewest edits touch."""
    kept = {(i, j) for i, j in align(a, b) if i is not None and j is not None and a[i] == b[j]}
    gone, new = frozenset(range(len(a))), frozenset(range(len(b)))
    return gone - {i for i, _ in kept}, new - {j for _, j in kept}


def align(a: Sequence[object], b: Sequence[object]) -> Aligned:
    """The alignment of two sequences with the fewest substitutions, insertions and deletions (Levenshtein).

    Of several with as few, one that keeps most of what is equal, then one that substitutes.
    """
    if list(a) == list(b):  # as an output and itself: no need for the whole table
        return tuple((i, i) for i in range(len(a)))
    rows, columns = len(a) + 1, len(b) + 1
    # cost[i][j]: edits that turn a[i:] into b[j:], each dearer than all that can be kept, less the elements kept
    edit = rows + columns
    cost = [[0] * columns for _ in range(rows)]
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            if i == len(a) or j == len(b):
                cost[i][j] = edit * (len(a) - i + len(b) - j)
            elif a[i] == b[j]:
                cost[i][j] = cost[i + 1][j + 1] - 1
            else:
                cost[i][j] = edit + min(cost[i + 1][j + 1], cost[i + 1][j], cost[i][j + 1])
    pairs: list[tuple[int | None, int | None]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and cost[i][j] == cost[i + 1][j + 1] + (-1 if a[i] == b[j] else edit):
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif i < len(a) and cost[i][j] == edit + cost[i + 1][j]:
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    return tuple(pairs)
