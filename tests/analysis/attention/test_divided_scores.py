"""Weights with their scores divided, against softmax of the scores themselves."""

import numpy as np
import pytest
import torch

from transformer.analysis.attention.divided_scores import with_scores_divided


@pytest.mark.parametrize("by", [1.0, 2.0, 8.0, 0.5])
def test_they_are_the_softmax_of_the_divided_scores(by: float) -> None:
    scores = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
    scores[:, :, -1] = -torch.inf  # masked
    found = with_scores_divided(scores.softmax(-1).numpy(), by)
    np.testing.assert_allclose(found, (scores / by).softmax(-1).numpy(), atol=1e-12)


def test_a_row_that_sees_nothing_stays_zero() -> None:
    np.testing.assert_array_equal(with_scores_divided(np.zeros((1, 3)), 8.0), np.zeros((1, 3)))


@pytest.mark.parametrize("by", [0.0, -1.0, float("nan")])
def test_a_divisor_that_is_not_above_zero_is_refused(by: float) -> None:
    with pytest.raises(ValueError, match="cannot be divided by"):
        with_scores_divided(np.ones((1, 1)), by)
