"""Shapes of matrices whose answer is known by hand."""

import numpy as np
import pytest

from transformer.analysis.attention.shapes import measured_shape

EYE = np.eye(4)


@pytest.mark.parametrize(
    ("weights", "shape", "share"),
    [
        (EYE, "diagonal", 1.0),
        (EYE[::-1], "anti_diagonal", 1.0),
        (EYE[[1, 3, 0, 2]], "scattered", 1.0),
        (np.full((4, 4), 0.25), "even", 0.25),
        (0.6 * EYE[::-1] + 0.1, "anti_diagonal", 0.7),
        (0.2 * EYE + 0.2, "even", 0.4),
        (np.vstack([EYE, EYE[:1], EYE[:1]]), "diagonal", 1.0),  # rows beyond the last column
        (EYE[:2], "diagonal", 1.0),  # an output that ends early
        (EYE[::-1][:2], "anti_diagonal", 1.0),
        (np.eye(3)[::-1], "anti_diagonal", 1.0),  # the middle one lies on both
    ],
)
def test_the_shape_is_where_the_weight_lies(weights, shape, share):
    found = measured_shape(weights)
    assert found is not None and found.shape == shape and found.share == pytest.approx(share)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (0, 0), (0, 3)])
def test_less_than_two_letters_have_no_shape(shape):
    assert measured_shape(np.ones(shape)) is None
