"""The shape of a matrix of cross-attention between two strings of symbols: whose order the rows follow, if anyone's."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Shape = Literal["diagonal", "anti_diagonal", "scattered", "even"]
SETTLED = 0.5
"""The share of a row's weight, on average, from which on it has settled on a place."""


@dataclass(frozen=True)
class MeasuredShape:
    """Where the weight of a matrix lies, as the mean over its rows."""

    diagonal: float
    """The weight of row t in column t: the same order."""
    anti_diagonal: float
    """The weight of row t in column n - 1 - t, of n columns: backwards."""
    largest: float
    """The largest weight of each row."""

    @property
    def shape(self) -> Shape:
        """Returns the diagonal that has settled, the heavier of both; "scattered" where each row has settled on some
        other place, and "even" where they have not."""
        if max(self.diagonal, self.anti_diagonal) >= SETTLED:
            return "diagonal" if self.diagonal >= self.anti_diagonal else "anti_diagonal"
        return "scattered" if self.largest >= SETTLED else "even"

    @property
    def share(self) -> float:
        """Returns the weight that `shape` speaks of."""
        return {"diagonal": self.diagonal, "anti_diagonal": self.anti_diagonal}.get(self.shape, self.largest)


def measured_shape(weights: Float[ndarray, "row column"]) -> MeasuredShape | None:
    """Returns where the weight lies; None for less than two rows or columns, where both diagonals are one.

    Rows are the symbols written and columns those read, without start and end marks; rows beyond the last column have
    no place on a diagonal and do not count.
    """
    n = weights.shape[1]
    counted = weights[:n]
    if len(counted) < 2 or n < 2:
        return None
    places = np.arange(len(counted))
    diagonal, anti_diagonal = counted[places, places], counted[places, n - 1 - places]
    return MeasuredShape(*(float(found.mean()) for found in (diagonal, anti_diagonal, counted.max(axis=1))))
