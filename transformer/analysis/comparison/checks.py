"""Checks of what stands side by side: two outputs, their attention, and the heads of two models matched.

Each is computed again by another algorithm than the one that drew it.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.attention.weight_checks import TOLERANCE, recomputed_attention
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.head_matching import Matching, Read
from transformer.analysis.steps.output_checks import SlowReader
from transformer.inspection.inspection import AttentionKind, Comparison, Inspection
from transformer.inspection.token_alignment import Aligned
from transformer.model.transformer import Transformer

_LESS = 1e-12
"""A ring that lowers the sum by no more lowers it by rounding."""


def check_written(name: str, model: Transformer, seen: Inspection, shown: Float[ndarray, " step"]) -> Iterator[Check]:
    """Checks that an output is what the model writes, and the probabilities of its tokens."""
    rows = np.exp(SlowReader(model, seen.interventions).log_probs(seen.source_ids, seen.target_ids))
    own = rows[np.arange(len(seen.target_ids)), list(seen.target_ids)]
    how = "the output read again in double precision"
    yield agree(f"{name}: each token has this probability, given those before it", shown, own, 1e-4, how)
    if not seen.forced:
        yield Check(f"{name}: each token is the most probable one", most_missed(rows, own, model), 1e-4, MISSED)


MISSED = "how much more probable another token is, at most"


def most_missed(rows: Float[ndarray, "step vocab"], own: Float[ndarray, " step"], model: Transformer) -> float:
    """Returns by how much the most probable token that may be written exceeds the one that was, at the worst step."""
    return float((np.delete(rows, model.config.pad_id, axis=1).max(axis=1) - own).max())


def check_alignment(claim: str, a: Sequence[object], b: Sequence[object], aligned: Aligned) -> Check:
    """Checks that every element stands once and in order, with as few places that differ as possible."""
    order = [i for i, _ in aligned if i is not None], [j for _, j in aligned if j is not None]
    if order != (list(range(len(a))), list(range(len(b)))):
        return Check(claim, math.inf, 0.0, "an element is missing, stands twice or out of order")
    differ = sum(i is None or j is None or a[i] != b[j] for i, j in aligned)
    how = "edits counted again from the beginning, row by row as in Wagner and Fischer (1974)"
    return agree(claim, differ, n_edits(a, b), 0.0, how)


def check_most_moved(
    model: Transformer, shown: Comparison, largest: float, head: tuple[str, int, int], claim: str
) -> Check:
    """Checks the largest move of a weight, and that no weight of another head moved more than one of this head."""
    forced, moved, unit = dict(enumerate(shown.before.target_ids)), {}, 1.0
    for kind in AttentionKind:
        sides = [
            recomputed_attention(model, seen.source_ids, seen.interventions, forced, kind)
            for seen in (shown.before, shown.after)
        ]
        old, new = (side.weights for side in sides)
        moved |= {(kind, *at): float(np.abs(new[at] - old[at]).max()) for at in np.ndindex(old.shape[:2])}
        unit = max(unit, *(float(side.units(side.weights).max(initial=1.0)) for side in sides))
    own = moved[head]
    how = f"the weights of all {len(moved)} heads computed again, before and after; how far the largest move is off"
    return Check(claim, max(abs(own - largest), max(moved.values()) - own), 2 * TOLERANCE * unit, how)


def n_edits(a: Sequence[object], b: Sequence[object]) -> int:
    """Returns the fewest substitutions, insertions and deletions that turn one sequence into the other."""
    counted = list(range(len(b) + 1))  # of no element of a
    for i, mine in enumerate(a):
        above, counted = counted, [i + 1]
        for j, theirs in enumerate(b):
            counted.append(min(above[j + 1] + 1, counted[j] + 1, above[j] + (mine != theirs)))
    return counted[-1]


def check_matching(first: Sequence[Read], second: Sequence[Read], matching: Matching) -> tuple[Check, ...]:
    """Checks that heads are this far apart on these sentences, and that no other pairing has a smaller sum."""
    distances, n_rows = slow_distances(first, second)
    one_to_one = _one_to_one(matching)
    lower = one_to_one.holds and has_lowering_ring(matching.distances, matching.partners)
    places = [list(np.ndindex(reads[0].weights.shape[:2])) for reads in (first, second)]
    return (
        agree(
            "Rows and columns are the heads in the order of the layers",
            [*matching.heads, *matching.others],
            [*places[0], *places[1]],
            0,
            "layers and heads counted",
        ),
        agree("The number of compared rows", matching.n_rows, n_rows, 0, "rows counted again"),
        one_to_one,
        agree(
            "Each distance is the mean Jensen-Shannon distance of two heads' rows",
            matching.distances,
            distances,
            1e-6,
            f"all sentences read again, {n_rows:,} rows of {distances.size:,} pairs compared one pair at a time by "
            "their Kullback-Leibler divergences from the mean of both",
        ),
        Check(
            "No pairing of all heads has a smaller sum of distances",
            float(lower),
            0.0,
            "searched for a ring of heads whose exchange lowers the sum (Klein 1967); 1 where there is one",
        ),
    )


def _one_to_one(matching: Matching) -> Check:
    """Checks that no head is in two pairs, and that as many are paired as can be."""
    paired = [column for column in matching.partners if column is not None]
    wanted = min(len(matching.heads), len(matching.others))
    off = abs(len(set(paired)) - wanted) + abs(len(paired) - wanted)
    return Check("No head is in two pairs", float(off), 0.0, f"{wanted} pairs counted; how many are off")


def slow_distances(first: Sequence[Read], second: Sequence[Read]) -> tuple[Float[ndarray, "head other"], int]:
    """Returns mean Jensen-Shannon distances, sqrt((KL(p||m) + KL(q||m)) / 2) in bits, and the number of rows."""
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


def has_lowering_ring(costs: Float[ndarray, "row column"], partners: Sequence[int | None]) -> bool:
    """Tells whether rows in a ring could take over one another's column at a smaller sum, by Bellman and Ford.

    A pairing without such a ring has the least sum there is (Klein 1967, "A primal method for minimal cost flows").
    """
    size = max(costs.shape)
    square = np.zeros((size, size))  # a row or column too many costs nothing
    square[: costs.shape[0], : costs.shape[1]] = costs
    column = [column for column in partners if column is not None]
    free = iter(sorted(set(range(size)) - set(column)))
    column = [next(free) if column is None else column for column in (*partners, *[None] * (size - len(partners)))]
    gain = square[:, column] - np.diagonal(square[:, column])[:, None]
    least = np.zeros(size)
    for _ in range(size):
        least = np.minimum(least, (least[:, None] + gain).min(axis=0))
    return bool(((least[:, None] + gain).min(axis=0) < least - _LESS).any())


def _rows(read: Read, *both: Read) -> Float[ndarray, "head row key"]:
    """Returns a model's rows with at least two keys to choose from in every layer of both models."""
    free = np.all([(other.mask.sum(axis=-1) > 1).all(axis=0) for other in both], axis=0)
    return read.weights.reshape(-1, *read.weights.shape[2:])[:, free].astype(np.float64)


def _divergence(p: Float[ndarray, "row key"], mean: Float[ndarray, "row key"]) -> Float[ndarray, " row"]:
    """Returns KL(p || mean) in bits; a key of weight 0 adds nothing."""
    there = p > 0
    return np.where(there, p * np.log2(np.where(there, p, 1.0) / np.where(there, mean, 1.0)), 0.0).sum(axis=-1)
