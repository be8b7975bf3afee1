"""Linear probes: multinomial logistic regressions that read labels from vectors, several of them at once.

Each minimises mean cross-entropy + PENALTY / 2 · tr(A Σ Aᵀ), where A holds a row for each class and Σ is the covariance
of the vectors it is fitted on: a ridge that does not depend on how the vectors are scaled or turned. The minimum is
unique but for a constant added to all biases, and it is found from zero weights: nothing is drawn at random.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

PENALTY = 0.01
JITTER = 1e-4
"""What is added to the diagonal of the covariance, as a share of its mean: some directions hardly vary."""
_MAX_STEPS = 200


@dataclass(frozen=True)
class LinearProbes:
    """Probes that were fitted to the same vectors, one for each row of labels."""

    mean: Float[ndarray, "d_model"]
    """The mean of the vectors, which is subtracted first."""
    weights: Float[ndarray, "probe label d_model"]
    bias: Float[ndarray, "probe label"]

    def read(self, vectors: Float[ndarray, "sentence d_model"]) -> Int[ndarray, "probe sentence"]:
        """Returns the label that each probe reads from each vector."""
        scores = np.einsum("sd,pld->psl", vectors - self.mean, self.weights) + self.bias[:, None]
        return scores.argmax(axis=2)


def covariance(vectors: Float[ndarray, "sentence d_model"]) -> Float[ndarray, "d_model d_model"]:
    """Returns Σ: the covariance, with a little more on its diagonal."""
    centred = vectors - vectors.mean(axis=0)
    found = centred.T @ centred / len(vectors)
    return found + (JITTER * np.trace(found) / len(found) + 1e-12) * np.eye(len(found))


def fit_probes(
    vectors: Float[ndarray, "sentence d_model"], labels: Int[ndarray, "probe sentence"], n_labels: int
) -> LinearProbes:
    """Fits a probe to each row of labels, all at once with L-BFGS, in coordinates in which Σ is the identity."""
    n_probes, n = labels.shape
    mean, factor = vectors.mean(axis=0), np.linalg.cholesky(covariance(vectors))
    white = torch.from_numpy(np.linalg.solve(factor, (vectors - mean).T).T).float()
    wanted = torch.from_numpy(labels).flatten()  # [probe sentence] -> [probe * sentence]
    weights = torch.zeros(n_probes, n_labels, white.size(1), requires_grad=True)
    bias = torch.zeros(n_probes, n_labels, requires_grad=True)
    search = torch.optim.LBFGS([weights, bias], max_iter=_MAX_STEPS, tolerance_grad=1e-5, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        scores = torch.einsum("sd,pld->psl", white, weights) + bias[:, None]
        summed = torch.nn.functional.cross_entropy(scores.flatten(0, 1), wanted, reduction="sum")
        value = summed / n + PENALTY / 2 * weights.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        search.step(loss)
    found = np.linalg.solve(factor.T, weights.detach().double().numpy().reshape(-1, white.size(1)).T).T
    return LinearProbes(mean, found.reshape(weights.shape), bias.detach().double().numpy())
