"""Attention weights as they would be if their scores were divided by a number, such as the √d_k that was left out."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def with_scores_divided(weights: Float[ndarray, "*row key"], by: float) -> Float[ndarray, "*row key"]:
    """Returns softmax(scores / by) for the scores that gave these weights (section 3.2.1, equation 1).

    A weight is exp(score) over its row's sum, so that w ** (1 / by), divided by its own sum, is what is asked for. A
    weight of 0 stays 0: it is masked, or so small that its type has no number for it. ValueError unless by > 0.
    """
    if not by > 0:
        raise ValueError(f"scores cannot be divided by {by}")
    roots = weights.astype(float) ** (1 / by)
    sums = roots.sum(axis=-1, keepdims=True)
    return np.divide(roots, sums, out=np.zeros_like(roots), where=sums > 0)
