"""Small pictures of attention: each pixel of a large matrix is the largest weight of a patch, so no line is lost."""

import numpy as np
from jaxtyping import Shaped
from numpy import ndarray


def pooled(values: Shaped[ndarray, "*any row column"], side: int) -> Shaped[ndarray, "*any small_row small_column"]:
    """The same with at most `side` rows and columns, each the largest of the patch that it stands for."""
    for axis in (-2, -1):
        length = values.shape[axis]
        size = min(side, length)
        values = np.maximum.reduceat(values, np.arange(size) * length // size, axis=axis)
    return values
