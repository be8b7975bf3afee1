"""The entropy of each row of attention, and the largest that it could have."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.training.metrics import attention_entropy

Unit = Literal["nats", "bits"]


@dataclass(frozen=True)
class RowEntropy:
    """The entropy of each row of each head, and the largest that its row could have."""

    values: Float[ndarray, "layer head query"]
    """-sum of w log w: 0 looks at one key alone. NaN where a row sees nothing."""
    largest: Float[ndarray, "layer query"]
    """log of the number of keys that the mask allows: all of them alike."""
    unit: Unit


def row_entropy(
    weights: Float[ndarray, "layer head query key"], mask: Bool[ndarray, "layer query key"], unit: Unit
) -> RowEntropy:
    """Returns the Shannon entropy of every row, in nats (natural logarithm) or bits (base 2), in float64."""
    base = 1.0 if unit == "nats" else np.log(2.0)
    allowed = mask.sum(axis=-1)
    largest = np.log(np.maximum(allowed, 1)) / base
    return RowEntropy(attention_entropy(weights) / base, largest, unit)
