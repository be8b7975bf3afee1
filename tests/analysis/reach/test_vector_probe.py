"""Reading tokens back from a fixed vector: known answers, other code, and models that have no vector."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_recurrent
from torch import nn
from view_examples import lab, probed, recurrent_lab

from transformer.analysis.reach.linear_probe import PENALTY, covariance, fit_probes
from transformer.analysis.reach.vector_probe import (
    MIN_TESTED,
    TESTED,
    fixed_vectors,
    has_vector,
    probe_vector,
)
from transformer.analysis.reach.vector_probe_checks import check_probe
from transformer.model.recurrent import VECTOR
from transformer.views.reach.bottleneck import Bottleneck


class KeepsOneToken(nn.Module):
    """A model whose vector is one of its source's token vectors, by position, and nothing else."""

    def __init__(self, model: nn.Module, position: int) -> None:
        super().__init__()
        self.model, self.position, self.config = model, position, model.config

    def sites(self):
        return self.model.sites()

    def encode(self, source, source_mask=None, *, tap=None):
        vector = self.model.source_tokens(source[:, self.position])[:, None]
        return vector if tap is None else tap(VECTOR, vector)

    def __getattr__(self, name):
        return super().__getattr__(name) if name in ("model", "_modules") else getattr(self.model, name)


@pytest.mark.parametrize("position", [0, 2])
def test_a_vector_that_holds_one_token_gives_back_that_token_and_no_other(position):
    checkpoint = recurrent_lab("none").checkpoint
    found = probe_vector(replace(checkpoint, model=KeepsOneToken(checkpoint.model, position)))
    for each in found.lengths:
        if each.length > position:
            share = each.right / len(each.tested)
            assert share[position] == 1
            assert np.delete(share, position).max() < 0.3  # guessing one of 20 symbols gets about 0.05


def test_probes_of_separable_labels_read_all_of_them_whatever_the_scale_of_the_vectors():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, (2, 400))
    vectors = np.concatenate((np.eye(5)[labels[0]], 1e-3 * np.eye(5)[labels[1]]), axis=1) + 1e-5 * rng.normal(
        size=(400, 10)
    )
    assert (fit_probes(vectors, labels).read(vectors) == labels).all()
    assert (fit_probes(1_000 * vectors, labels).read(1_000 * vectors) == labels).all()


def test_the_fitted_probe_has_a_smaller_loss_than_any_other_nearby():
    rng = np.random.default_rng(1)
    vectors, labels = rng.normal(size=(60, 3)), rng.integers(0, 4, (1, 60))
    found, spread = fit_probes(vectors, labels), covariance(vectors)

    def loss(weights, bias):
        scores = (vectors - vectors.mean(axis=0)) @ weights.T + bias
        of_label = scores[np.arange(60), labels[0]]
        ridge = PENALTY / 2 * np.trace(weights @ spread @ weights.T)
        return float(np.log(np.exp(scores).sum(axis=1)).mean() - of_label.mean() + ridge)

    best = loss(found.weights[0], found.bias[0])
    for _ in range(50):
        other = found.weights[0] + 0.05 * rng.normal(size=(4, 3)), found.bias[0] + 0.05 * rng.normal(size=4)
        assert loss(*other) > best


@pytest.mark.slow
def test_no_tested_sentence_was_fitted_on_and_probing_twice_gives_the_same():
    checkpoint = recurrent_lab("none").checkpoint
    found, again = probe_vector(checkpoint), probe_vector(checkpoint)
    assert found.digest == again.digest and found.lengths
    for each in found.lengths:
        assert not {source for source, _ in each.tested} & {source for source, _ in each.fitted}
        assert MIN_TESTED <= len(each.tested) <= TESTED
        assert {len(source) for source, _ in (*each.tested, *each.fitted)} == {each.length}


def test_the_vector_of_a_sentence_is_the_last_state_of_a_layer_that_reads_forwards():
    model = random_recurrent(cell="gru", bidirectional=False)
    sources = [(5, 6, 7), (9, 5, 4)]
    with torch.no_grad():
        embedded = model.source_tokens(torch.tensor([[*ids, 2] for ids in sources])) * model.config.d_model**0.5
        wanted = model.encoder[0].forwards(embedded)[1][0]
    np.testing.assert_allclose(fixed_vectors(model, sources), wanted.numpy(), atol=1e-6)


def test_a_transformer_has_no_vector():
    assert not has_vector(lab().model) and has_vector(recurrent_lab("additive").model)
    with pytest.raises(ValueError, match="a Transformer has no fixed vector"):
        probe_vector(lab().checkpoint)


def test_a_probe_that_was_not_fitted_to_the_end_is_noticed():
    lab_, found = probed().lab, probed().found
    first = found.lengths[0]
    worse = replace(first.probes, weights=tuple(0.9 * own for own in first.probes.weights))
    data = Bottleneck().data(lab_, found)
    counts = {"right": data.right, "guessed": data.guessed, "whole": data.sentences[0], "exact": data.sentences[1]}
    found = replace(found, lengths=(replace(first, probes=worse), *found.lengths[1:]))
    checks = check_probe(lab_.model, found, **counts)
    (slope,) = (check for check in checks if check.claim.startswith("No other linear probe"))
    assert not slope.holds
