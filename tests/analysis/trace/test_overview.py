"""The overview of a pass: its rows are what the sublayers hand on, its tokens those that are attended to most."""

import numpy as np
import pytest
import torch

from transformer.analysis.trace.overview import most_attended, stages, written_probabilities
from transformer.lab import load
from transformer.model.taps import Site


@pytest.fixture(scope="module")
def lab():
    return load("pronouns-en-fr")


@pytest.fixture(scope="module")
def seen(lab):
    return lab.inspect("The animal did not cross the street because it was too tired.")


def test_each_row_is_what_the_next_sublayer_reads(lab, seen):
    trace = lab.trace(seen)
    for stack, n_sublayers in (("encoder", 2), ("decoder", 3)):
        own = stages(lab.model, trace, stack)
        assert len(own) == 2 + 2 * n_sublayers
        for layer in range(2):
            read = trace.taken[Site(stack, layer, "self", "input")].numpy()
            assert np.array_equal(own[1 + layer * n_sublayers].states, read)
        for stage in own:
            assert stage.weights is None or np.allclose(stage.weights.sum(axis=1), 1, atol=1e-5)


def test_the_last_row_of_the_decoder_gives_the_written_probabilities(lab, seen):
    trace = lab.trace(seen)
    states = torch.tensor(stages(lab.model, trace, "decoder")[-1].states)
    with torch.no_grad():
        probabilities = lab.model.project(states).softmax(-1).numpy()
    written = probabilities[np.arange(len(seen.target_ids)), list(seen.target_ids)]
    assert np.allclose(written_probabilities(lab.model, trace), written, atol=1e-6)
    assert np.allclose(written, seen.probabilities, atol=1e-5)


def test_a_token_comes_with_those_that_it_attended_to_most():
    weights = np.array([[[[0.1, 0.2, 0.0, 0.7], [0.5, 0.1, 0.4, 0.0], [0.3, 0.3, 0.2, 0.2], [0, 0, 0, 1]]]])
    assert most_attended(weights, 0, 3) == (0, 1, 3)
    assert most_attended(weights, 1, 2) == (0, 1)
    assert most_attended(weights[..., :2, :2], 1, 3) == (0, 1)  # a sentence may have fewer
