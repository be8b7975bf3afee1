"""A product of two matrices inside a step: its factors, its result, and the tokens at their rows and columns."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Shaped
from numpy import ndarray

from transformer.analysis.trace.step import Value


@dataclass(frozen=True)
class Product:
    """One head's product; each entry of the result is a row of the left factor times a column of the right one."""

    names: tuple[str, str, str]
    left: Shaped[ndarray, "row inner"]
    right: Shaped[ndarray, "inner column"]
    result: Shaped[ndarray, "row column"]
    """As the model computed it, whatever a switch put in its place afterwards."""
    rows: tuple[str, ...] | None
    inner: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    """The tokens of each axis; None where it counts dimensions."""

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """The ends of each matrix's scale: 0 to 1 for weights, else as far as its numbers go to both sides of 0."""
        ends = []
        for name, values in zip(self.names, (self.left, self.right, self.result), strict=True):
            reach = float(np.abs(values).max(initial=0.0)) or 1.0
            ends.append((0.0, 1.0) if name == "weights" else (-reach, reach))
        return tuple(ends)


def head_product(
    left: Value, right: Value, result: Value, head: int, tokens: dict[str, tuple[str, ...] | None]
) -> Product:
    """Returns one head's product; a right factor that counts the same columns as the left one is turned."""
    turned = left.columns == right.columns
    values = right.values[head]
    computed = result.values if result.before is None else result.before
    return Product(
        (left.name, f"{right.name}ᵀ" if turned else right.name, result.name),
        left.values[head],
        values.T if turned else values,
        computed[head],
        tokens.get(left.rows),
        tokens.get(left.columns),
        tokens.get(result.columns),
    )
