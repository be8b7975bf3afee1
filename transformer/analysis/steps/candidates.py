"""The candidates of a decoding step: the most probable tokens, the entropy of the choice, the rank of a token."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray


@dataclass(frozen=True)
class Candidates:
    """The most probable tokens of one step, and the rest of the probability."""

    ids: tuple[int, ...]
    """The most probable first."""
    probabilities: tuple[float, ...]
    rest: float
    """The probability of all other tokens together."""
    n_rest: int
    """The number of other tokens."""
    entropy: float
    """The entropy of the whole distribution, in nats."""


def candidates(log_probs: Float[ndarray, " vocab"], n: int, also: Collection[int] = ()) -> Candidates:
    """Returns the `n` most probable tokens of one step, and those in `also`, by probability."""
    precise = log_probs.astype(np.float64)
    order = np.argsort(-precise, kind="stable")
    wanted = set(order[:n].tolist()) | set(also)
    ids = tuple(token for token in order.tolist() if token in wanted)
    shares = np.exp(precise)
    kept = tuple(shares[list(ids)].tolist())
    others = np.delete(shares, list(ids))
    surprise = shares * np.where(shares > 0, precise, 0.0)
    return Candidates(ids, kept, float(others.sum()), len(others), max(0.0, -float(surprise.sum())))


def rank(log_probs: Float[ndarray, " vocab"], token: int) -> int:
    """Returns the rank of a token by probability; 1 for the most probable."""
    return int((log_probs > log_probs[token]).sum()) + 1
