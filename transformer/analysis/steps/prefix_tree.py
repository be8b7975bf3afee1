"""Outputs of one sentence that begin alike, as a tree: what they share stands once."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Branch:
    """One token of the tree."""

    step: int
    token: int
    row: int
    """Where it is drawn: an output keeps the row of the first output with which it begins, as long as it does."""
    parent: int | None
    """Index of the branch before it."""
    weight: float
    """Of all outputs that come by here together."""
    outputs: tuple[int, ...]
    """Which outputs come by here."""


def grow(outputs: Sequence[Sequence[int]], weights: Sequence[float] | None = None) -> tuple[Branch, ...]:
    """The tree of these outputs, the first one straight along row 0; a weight of 1 each where none are given."""
    shares = [1.0] * len(outputs) if weights is None else list(weights)
    if len(shares) != len(outputs):
        raise ValueError(f"{len(outputs)} outputs need as many weights, not {len(shares)}")
    by_prefix: dict[tuple[int, ...], list[int]] = {}
    for index, ids in enumerate(outputs):
        for step in range(len(ids)):
            by_prefix.setdefault(tuple(ids[: step + 1]), []).append(index)
    places = {prefix: place for place, prefix in enumerate(by_prefix)}
    rows: dict[int, int] = {}
    for index in dict.fromkeys(found[0] for found in by_prefix.values()):
        rows[index] = len(rows)
    return tuple(
        Branch(
            step=len(prefix) - 1,
            token=prefix[-1],
            row=rows[found[0]],
            parent=places.get(prefix[:-1]),
            weight=sum(shares[index] for index in found),
            outputs=tuple(found),
        )
        for prefix, found in by_prefix.items()
    )
