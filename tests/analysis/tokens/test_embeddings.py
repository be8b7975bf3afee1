"""Token embeddings: those that a pass uses, their principal plane and their neighbours."""

import numpy as np
import pytest
from random_models import random_model, random_recurrent

from transformer.analysis.tokens.embeddings import embeddings, embeddings_in_passes, neighbours, principal_plane


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_matrix_is_the_one_that_a_pass_uses(side):
    for model in (random_model(tie_embeddings=False), random_recurrent(vocab_size=24, max_length=7)):
        shown = embeddings(model, side)
        np.testing.assert_allclose(embeddings_in_passes(model, side), shown, atol=1e-6)


def test_points_of_a_plane_are_found_again_and_hold_all_variance():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(50, 2)) * (3.0, 1.0)
    turned = np.linalg.qr(rng.normal(size=(6, 6)))[0][:2]
    plane = principal_plane(flat @ turned + 5)
    assert plane.shares.sum() == pytest.approx(1) and plane.shares[0] > plane.shares[1]
    apart = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(plane.places[:, None] - plane.places[None], axis=-1), apart, atol=1e-9)


def test_neighbours_come_by_cosine_whatever_their_length():
    vectors = np.array([[1.0, 0], [0, 0], [5, 1], [-1, 0], [0, 2]])
    found = neighbours(vectors, 0, 9)
    assert found.ids.tolist() == [2, 1, 4, 3]
    np.testing.assert_allclose(found.cosines, [5 / 26**0.5, 0, 0, -1])
