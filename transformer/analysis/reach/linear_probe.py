"""Linear probes: multinomial logistic regressions that read labels from vectors.

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
"""The addition to the diagonal of the covariance, as a share of its mean: some directions hardly vary."""
_MAX_STEPS = 200


@dataclass(frozen=True)
class LinearProbes:
    """Probes that were fitted to the same vectors; each has labels of its own."""

    mean: Float[ndarray, " d_model"]
    """The mean of the vectors, which is subtracted first."""
    weights: tuple[Float[ndarray, "label d_model"], ...]
    bias: tuple[Float[ndarray, " label"], ...]

    def read(self, vectors: Float[ndarray, "sentence d_model"]) -> Int[ndarray, "probe sentence"]:
        """Returns the label that each probe reads from each vector."""
        centred = vectors - self.mean
        each = zip(self.weights, self.bias, strict=True)
        return np.stack([(centred @ weights.T + bias).argmax(axis=1) for weights, bias in each])


def covariance(vectors: Float[ndarray, "sentence d_model"]) -> Float[ndarray, "d_model d_model"]:
    """Returns Σ: the covariance, with a little more on its diagonal."""
    centred = vectors - vectors.mean(axis=0)
    found = centred.T @ centred / len(vectors)
    return found + (JITTER * np.trace(found) / len(found) + 1e-12) * np.eye(len(found))


def fit_probes(vectors: Float[ndarray, "sentence d_model"], labels: Int[ndarray, "probe sentence"]) -> LinearProbes:
    """Fits a probe to each row of labels, which count from 0, in coordinates in which Σ is the identity."""
    mean, factor = vectors.mean(axis=0), np.linalg.cholesky(covariance(vectors))
    white = torch.from_numpy(np.linalg.solve(factor, (vectors - mean).T).T).float()
    found = [_fit(white, torch.from_numpy(row)) for row in labels]
    weights = tuple(np.linalg.solve(factor.T, own.T).T for own, _ in found)
    return LinearProbes(mean, weights, tuple(bias for _, bias in found))


def _fit(
    white: Float[torch.Tensor, "sentence d_model"], labels: Int[torch.Tensor, " sentence"]
) -> tuple[Float[ndarray, "label d_model"], Float[ndarray, " label"]]:
    """Returns weights and biases after L-BFGS."""
    n_labels = int(labels.max()) + 1
    weights, bias = torch.zeros(n_labels, white.size(1)), torch.zeros(n_labels)
    given = [weights.requires_grad_(True), bias.requires_grad_(True)]
    search = torch.optim.LBFGS(given, max_iter=_MAX_STEPS, tolerance_grad=3e-5, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        scores = torch.addmm(bias, white, weights.T)
        value = torch.nn.functional.cross_entropy(scores, labels) + PENALTY / 2 * weights.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        search.step(loss)
    return weights.detach().double().numpy(), bias.detach().double().numpy()
