"""The heads of a model while it was trained: one score a head and snapshot, and the largest change of it.

Arrays in, numbers out. Not here: loading snapshots and running them (a page does, with lab.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.training.metrics import attention_entropy

MIN_SHARE = 0.1
"""The share of the largest score that a change must have to be called sudden."""
TIMES_USUAL = 3
"""The size that a sudden change must have, in units of the median change."""

Scores = Float[ndarray, "snapshot layer head"]


@dataclass(frozen=True)
class Jump:
    """A head whose score changed within a short stretch of training."""

    layer: int
    head: int
    first: int
    """The index of the snapshot before the change."""
    last: int
    """The index of the snapshot after it."""
    before: float
    after: float


def row_entropy(
    weights: Float[ndarray, "layer head query key"], mask: Bool[ndarray, "layer query key"]
) -> Float[ndarray, "layer head"]:
    """Returns the entropy in nats of each head's rows, averaged over the rows with at least two keys to choose from.

    0 where every such row looks at one key alone; NaN where no row has a choice.
    """
    entropy = attention_entropy(weights)  # [layer head query]
    choice = (mask.sum(axis=-1) > 1)[:, None, :] & np.isfinite(entropy)
    count = choice.sum(axis=-1)
    total = np.where(choice, entropy, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def largest_jump(scores: Scores, steps: Sequence[int], *, falling: bool) -> Jump | None:
    """Finds the largest fall (or rise) of a head's score while the step at most doubled; None where none stands out.

    It stands out from noise where it is `MIN_SHARE` of the largest score, and `TIMES_USUAL` times the median of what
    heads move, up or down, over such stretches. Steps are seen on a logarithmic scale, so that what is called sudden
    does not depend on how densely snapshots lie: 0 and 1 count as one doubling apart. Of equal changes the one over
    fewer steps is taken.
    """
    if len(scores) != len(steps):
        raise ValueError(f"{len(scores)} snapshots' scores do not fit {len(steps)} steps")
    best: tuple[float, int, Jump] | None = None
    moves = []
    for first, start in enumerate(steps):
        for last in range(first + 1, len(steps)):
            if steps[last] > 2 * max(start, 0.5):
                break
            change = (scores[first] - scores[last]) * (1 if falling else -1)
            if np.isnan(change).all():
                continue
            moves.append(np.abs(change).ravel())
            layer, head = np.unravel_index(int(np.nanargmax(change)), change.shape)
            size = (float(change[layer, head]), start - steps[last])
            if size[0] > 0 and (best is None or size > best[:2]):
                before, after = float(scores[first, layer, head]), float(scores[last, layer, head])
                best = (*size, Jump(int(layer), int(head), first, last, before, after))
    if best is None:
        return None
    least = max(MIN_SHARE * float(np.nanmax(np.abs(scores))), TIMES_USUAL * float(np.nanmedian(np.concatenate(moves))))
    return best[2] if best[0] >= least else None
