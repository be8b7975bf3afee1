"""Several outputs of one sentence as a tree in which their common beginning stands once, and the tokens that differ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from transformer.inspection.inspection import Inspection
from transformer.inspection.token_alignment import edit_marks


@dataclass(frozen=True)
class PrefixNode:
    """One token of the tree."""

    step: int
    token: int
    row: int
    """The row at which it is drawn: an output shares the row of the first output with the same beginning."""
    parent: int | None
    """The index of the node before it."""
    weight: float
    """The sum of the weights of all outputs that begin with this prefix."""
    outputs: tuple[int, ...]
    """The indices of these outputs."""


def prefix_tree(outputs: Sequence[Sequence[int]], weights: Sequence[float] | None = None) -> tuple[PrefixNode, ...]:
    """Returns the tree of these outputs, the first one straight along row 0; each weighs 1 where no weights are given.

    A node comes after its parent.
    """
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
        PrefixNode(
            step=len(prefix) - 1,
            token=prefix[-1],
            row=rows[found[0]],
            parent=places.get(prefix[:-1]),
            weight=sum(shares[index] for index in found),
            outputs=tuple(found),
        )
        for prefix, found in by_prefix.items()
    )


def branch_changes(branches: Sequence[Inspection], own: int = 0) -> Bool[ndarray, "branch step"]:
    """Marks the tokens of each branch that the fewest edits change from the model's `own` output; that one is compared
    with the first branch.

    Shorter branches end in False.
    """
    changed = np.zeros((len(branches), max(len(branch.target_ids) for branch in branches)), dtype=bool)
    for index, branch in enumerate(branches):
        before = branches[0 if index <= own else own]
        _, new = edit_marks(before.target_tokens, branch.target_tokens)
        changed[index, sorted(new)] = True
    return changed
