"""Proofs of what stands side by side: two outputs, their attention, and the heads of two models brought together.

Each is computed again by another algorithm than the one that drew it.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.analysis.attention.weight_checks import TOLERANCE, recomputed_weights
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.head_matching import Matching, Read
from transformer.analysis.figure_checks import slow_log_probs
from transformer.inspection.inspection import AttentionKind, AttentionShift, Comparison
from transformer.inspection.token_alignment import Aligned
from transformer.model.transformer import Transformer

_LESS = 1e-12
"""A ring that lowers the sum by no more lowers it by rounding."""


def check_outputs(model: Transformer, shown: Comparison) -> Iterator[Check]:
    """That both outputs are what the model writes without and with the switches, aligned by the fewest edits."""
    for name, seen in (("Before", shown.before), ("After", shown.after)):
        rows = np.exp(slow_log_probs(model, seen.source_ids, seen.target_ids, seen.interventions))
        own = rows[np.arange(len(seen.target_ids)), list(seen.target_ids)]
        how = "the output read again in double precision"
        yield agree(f"{name}: each token has the probability under it", seen.probabilities, own, 1e-4, how)
        yield Check(f"{name}: each token is the most probable one", most_missed(rows, own, model), 1e-4, MISSED)
    ids = shown.before.target_ids, shown.after.target_ids
    yield check_alignment("Nothing aligns the two outputs with fewer edits", *ids, shown.alignment)


MISSED = "how much more probable another token is, at most"


def most_missed(rows: Float[ndarray, "step vocab"], own: Float[ndarray, "step"], model: Transformer) -> float:
    """By how much the most probable token that may be written exceeds the one that was, at the worst step."""
    return float((np.delete(rows, model.config.pad_id, axis=1).max(axis=1) - own).max())


def check_alignment(claim: str, a: Sequence[object], b: Sequence[object], aligned: Aligned) -> Check:
    """That every element stands once and in order, with as few places that differ as there can be."""
    order = [i for i, _ in aligned if i is not None], [j for _, j in aligned if j is not None]
    if order != (list(range(len(a))), list(range(len(b)))):
        return Check(claim, math.inf, 0.0, "an element is missing, stands twice or out of order")
    differ = sum(i is None or j is None or a[i] != b[j] for i, j in aligned)
    how = "edits counted again from the beginning, row by row as in Wagner and Fischer (1974); difference"
    return agree(claim, differ, n_edits(a, b), 0.0, how)


def check_most_moved(model: Transformer, shown: Comparison, shift: AttentionShift, claim: str) -> Check:
    """That no weight of another head moved more than one of the head that `shift` names first, and by how much."""
    (said, *named), *_ = shift.largest()
    forced, moved = dict(enumerate(shown.before.target_ids)), {}
    for kind in AttentionKind:
        stack, sublayer = kind.where
        old, new = (
            recomputed_weights(model, seen.source_ids, seen.interventions, forced, stack=stack, sublayer=sublayer)
            for seen in (shown.before, shown.after)
        )
        moved |= {(kind, *at): float(np.abs(new[at] - old[at]).max()) for at in np.ndindex(old.shape[:2])}
    own = moved[tuple(named)]
    how = f"the weights of all {len(moved)} heads computed again, before and after; how far the largest move is off"
    return Check(claim, max(abs(own - said), max(moved.values()) - own), 2 * TOLERANCE, how)


def n_edits(a: Sequence[object], b: Sequence[object]) -> int:
    """The fewest substitutions, insertions and deletions that turn one sequence into the other."""

    counted = list(range(len(b) + 1))  # of no element of a
    for i, mine in enumerate(a):
        above, counted = counted, [i + 1]
        for j, theirs in enumerate(b):
            counted.append(min(above[j + 1] + 1, counted[j] + 1, above[j] + (mine != theirs)))
    return counted[-1]


def check_matching(first: Sequence[Read], second: Sequence[Read], matching: Matching) -> tuple[Check, ...]:
    """Checks that heads are this far apart on these sentences, and that no other pairing has a smaller sum."""
    distances, n_rows = slow_distances(first, second)
    paired = sum(matching.distances[row, column] for row, column in enumerate(matching.partners) if column is not None)
    again, rings = assignment_by_rings(distances)
    best = sum(distances[row, column] for row, column in enumerate(again) if column is not None)
    places = [list(np.ndindex(reads[0].weights.shape[:2])) for reads in (first, second)]
    return (
        agree(
            "Each row and column is the head that it says",
            [*matching.heads, *matching.others],
            [*places[0], *places[1]],
            0,
            "layers and heads counted",
        ),
        agree("Each is compared on as many rows as it says", matching.n_rows, n_rows, 0, "rows counted again"),
        _one_to_one(matching),
        agree(
            "Each distance is the mean Jensen-Shannon distance of two heads' rows",
            matching.distances,
            distances,
            1e-6,
            f"all sentences read again, {n_rows:,} rows of {distances.size:,} pairs compared one pair at a time by "
            "their Kullback-Leibler divergences from the mean of both",
        ),
        agree(
            "No pairing of all heads has a smaller sum of distances",
            paired,
            best,
            1e-5,
            f"paired again from nothing by {rings} exchanges along rings, until none is left that lowers the sum "
            "(Klein 1967)",
        ),
    )


def _one_to_one(matching: Matching) -> Check:
    """Checks that no head is in two pairs, and that as many are paired as can be."""
    paired = [column for column in matching.partners if column is not None]
    wanted = min(len(matching.heads), len(matching.others))
    off = abs(len(set(paired)) - wanted) + abs(len(paired) - wanted)
    return Check("Every head is in one pair at most", float(off), 0.0, f"{wanted} pairs counted; how many are off")


def slow_distances(first: Sequence[Read], second: Sequence[Read]) -> tuple[Float[ndarray, "head other"], int]:
    """Mean Jensen-Shannon distances of every two heads, sqrt((KL(p||m) + KL(q||m)) / 2) in bits, and how many rows."""
    pairs = [(_rows(a, a, b), _rows(b, a, b)) for a, b in zip(first, second, strict=True)]
    n_rows = sum(mine.shape[1] for mine, _ in pairs)
    total = np.zeros((len(pairs[0][0]), len(pairs[0][1])))
    for mine, theirs in pairs:
        for head, p in enumerate(mine):
            for other, q in enumerate(theirs):
                mean = (p + q) / 2
                divergence = (_divergence(p, mean) + _divergence(q, mean)) / 2
                total[head, other] += np.sqrt(np.maximum(divergence, 0)).sum()
    return total / n_rows, n_rows


def assignment_by_rings(costs: Float[ndarray, "row column"]) -> tuple[tuple[int | None, ...], int]:
    """The column of each row with the least sum of costs, and the exchanges that it took.

    From any pairing on, rows in a ring take over one another's column as long as that lowers the sum; where no such
    ring is left the sum is the least there is (Klein 1967, "A primal method for minimal cost flows").
    """
    size = max(costs.shape)
    square = np.zeros((size, size))  # a row or column too many costs nothing
    square[: costs.shape[0], : costs.shape[1]] = costs
    column, rings = np.arange(size), 0
    while (ring := _lowering_ring(square[:, column] - square[np.arange(size), column][:, None])) is not None:
        column[ring] = column[np.roll(ring, -1)]
        rings += 1
    return tuple(int(c) if c < costs.shape[1] else None for c in column[: costs.shape[0]]), rings


def _lowering_ring(gain: Float[ndarray, "row other"]) -> Int[ndarray, "_"] | None:
    """Rows each of which takes the next one's column, at a smaller sum; by Bellman and Ford. None: there are none."""
    n_rows = len(gain)
    least, before = np.zeros(n_rows), np.full(n_rows, -1)
    changed = np.zeros(n_rows, dtype=bool)
    for _ in range(n_rows):
        through = least[:, None] + gain
        changed = through.min(axis=0) < least - _LESS
        if not changed.any():
            return None
        before[changed] = through.argmin(axis=0)[changed]
        least[changed] = through.min(axis=0)[changed]
    row = int(np.flatnonzero(changed)[0])
    for _ in range(n_rows):
        row = int(before[row])  # now it stands in a ring
    ring = [row]
    while (row := int(before[row])) != ring[0]:
        ring.append(row)
    return np.array(ring[::-1])


def _rows(read: Read, *both: Read) -> Float[ndarray, "head row key"]:
    """A model's rows with at least two keys to choose from, in every layer of both models."""
    free = np.all([(other.mask.sum(axis=-1) > 1).all(axis=0) for other in both], axis=0)
    return read.weights.reshape(-1, *read.weights.shape[2:])[:, free].astype(np.float64)


def _divergence(p: Float[ndarray, "row key"], mean: Float[ndarray, "row key"]) -> Float[ndarray, "row"]:
    """KL(p || mean) in bits; a key of weight 0 adds nothing."""
    there = p > 0
    return np.where(there, p * np.log2(np.where(there, p, 1.0) / np.where(there, mean, 1.0)), 0.0).sum(axis=-1)
