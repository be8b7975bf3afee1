"""Pairs the heads of two models that attend to the same tokens.

The seed decides at random which head takes which role, so head 3 of one model need not be head 3 of another. Heads are
paired so that the Jensen-Shannon distances between their rows of weights on the same sentences sum to the least (Kuhn
1955, "The Hungarian method"; distance: Endres and Schindelin 2003).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.heads.similarity import summed_distances

Place = tuple[int, int]
"""(layer, head)."""


@dataclass(frozen=True)
class Read:
    """The attention of one model's heads of a kind while it read a sentence."""

    weights: Float[ndarray, "layer head query key"]
    mask: Bool[ndarray, "layer query key"]


@dataclass(frozen=True)
class Matching:
    """Every head of two models compared, and the pairs that are closest all together."""

    distances: Float[ndarray, "head other"]
    """Mean Jensen-Shannon distance: 0 = the same weights in every row, 1 = never a key in common."""
    partners: tuple[int | None, ...]
    """The other model's head that each head of the first is paired with; None where the other has too few."""
    heads: tuple[Place, ...]
    """The first model's heads, in the order of the rows."""
    others: tuple[Place, ...]
    """The other's, in the order of the columns."""
    n_rows: int
    """Rows of weights that were compared: those with at least two keys to choose from."""

    def partner(self, head: Place) -> Place | None:
        """Returns the head of the other model that this one is paired with."""
        found = self.partners[self.heads.index(head)]
        return None if found is None else self.others[found]

    def nearest(self, head: Place) -> Place:
        """Returns the head of the other model that is closest to this one, whichever it is paired with."""
        return self.others[int(self.distances[self.heads.index(head)].argmin())]

    def distance(self, head: Place, other: Place) -> float:
        """Returns the distance of two heads."""
        return float(self.distances[self.heads.index(head), self.others.index(other)])


def match_heads(first: Sequence[Read], second: Sequence[Read]) -> Matching:
    """Pairs the heads of two models that read the same sentences; ValueError where they did not."""
    if not first or len(first) != len(second):
        raise ValueError(f"{len(first)} sentences of one model and {len(second)} of the other cannot be compared")
    sums, n_rows = None, 0
    for a, b in zip(first, second, strict=True):
        if a.weights.shape[2:] != b.weights.shape[2:]:
            raise ValueError(
                f"weights of shape {a.weights.shape[2:]} and {b.weights.shape[2:]} do not stand for the same tokens"
            )
        rows = (a.mask.sum(axis=-1) > 1).all(axis=0) & (b.mask.sum(axis=-1) > 1).all(axis=0)  # -> [query]
        heads, others = _flat(a.weights), _flat(b.weights)
        joined = torch.from_numpy(np.concatenate([heads, others])[:, rows])
        found = summed_distances(joined).numpy()[: len(heads), len(heads) :]
        sums = found if sums is None else sums + found
        n_rows += int(rows.sum())
    if not n_rows or sums is None:
        raise ValueError("no row has two keys to choose from, so nothing tells these heads apart")
    distances = sums / n_rows
    chosen = assignment(distances)
    return Matching(distances, chosen, _places(first[0]), _places(second[0]), n_rows)


def assignment(costs: Float[ndarray, "row column"]) -> tuple[int | None, ...]:
    """Returns the column of each row, no column twice, with the least sum of costs; None for rows left over.

    Kuhn's Hungarian method with shortest augmenting paths and potentials (Jonker and Volgenant 1987): rows are added
    one at a time, each by the cheapest way to make room for it. Of equal sums any.
    """
    if not np.isfinite(costs).all():
        raise ValueError("costs must be finite numbers")
    n_rows, n_columns = costs.shape
    if n_rows > n_columns:
        of_column = assignment(costs.T)
        found: list[int | None] = [None] * n_rows
        for column, row in enumerate(of_column):
            if row is not None:
                found[row] = column
        return tuple(found)
    row_of = np.full(n_columns + 1, -1)  # the last column is the door through which a new row comes in
    row_price, column_price = np.zeros(n_rows), np.zeros(n_columns + 1)
    for row in range(n_rows):
        _make_room(costs, row, row_of, row_price, column_price)
    placed = {int(row): column for column, row in enumerate(row_of[:-1]) if row >= 0}
    return tuple(placed[row] for row in range(n_rows))


def _make_room(
    costs: Float[ndarray, "row column"],
    row: int,
    row_of: ndarray,
    row_price: Float[ndarray, " row"],
    column_price: Float[ndarray, " door"],
) -> None:
    """Gives `row` a column by the shortest path over columns whose rows move on to another one."""
    door = len(row_of) - 1
    row_of[door] = row
    distance = np.full(door, np.inf)
    came_from = np.full(door, door)
    seen = np.zeros(door + 1, dtype=bool)
    column = door
    while row_of[column] >= 0:
        seen[column] = True
        here = int(row_of[column])
        reduced = costs[here] - row_price[here] - column_price[:door]
        closer = ~seen[:door] & (reduced < distance)
        distance[closer], came_from[closer] = reduced[closer], column
        nearest = int(np.where(seen[:door], np.inf, distance).argmin())
        step = distance[nearest]
        row_price[row_of[seen]] += step
        column_price[seen] -= step
        distance[~seen[:door]] -= step
        column = nearest
    while column != door:
        before = int(came_from[column])
        row_of[column], column = row_of[before], before
    row_of[door] = -1


def _flat(weights: Float[ndarray, "layer head query key"]) -> Float[ndarray, "heads query key"]:
    return weights.reshape(-1, *weights.shape[2:])


def _places(read: Read) -> tuple[Place, ...]:
    n_layers, n_heads = read.weights.shape[:2]
    return tuple((layer, head) for layer in range(n_layers) for head in range(n_heads))
