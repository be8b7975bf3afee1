"""Gradients at the source's embedding: in closed form, whatever the batch, of every family of models."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from random_models import AveragingConfig, random_convolutional, random_model, random_recurrent
from torch import nn

from transformer.analysis.reach.input_gradient_checks import check_differences, gradients_again
from transformer.analysis.reach.input_gradients import (
    EMBEDDING,
    distances,
    each_pair,
    farthest,
    mean_by_distance,
    untrained,
)
from transformer.config import TrainConfig
from transformer.training.state import new_state

PAIRS = [((5, 6, 7, 8), (8, 7, 6)), ((9, 4), (4, 9, 5, 6)), ((11,), (11,))]


class Halving(nn.Module):
    """A linear model: the state of each output token is the sum of the source's vectors, halved with each step between.

    So the gradient at a source token is the row of the projection, halved as often.
    """

    config = AveragingConfig()

    def __init__(self) -> None:
        super().__init__()
        self.source, self.projection = nn.Embedding(12, 6), nn.Linear(6, 12)

    def needs_recomputation(self, tap=None) -> bool:
        return False

    def encode(self, source, source_mask=None, *, tap=None):
        return tap(EMBEDDING, self.source(source)) * source_mask[..., None]

    def decode(self, target, memory, source_mask, target_mask=None, *, tap=None):
        lengths = source_mask.sum(dim=1)  # with the end mark
        places = torch.arange(memory.size(1))
        steps = torch.arange(1, target.size(1) + 1)[:, None] + (lengths[:, None, None] - 1 - places)
        return (0.5**steps) @ memory

    def project(self, states, *, tap=None):
        return self.projection(states)


def test_the_gradients_of_a_linear_model_are_those_of_the_formula():
    model = Halving()
    for source, norms in each_pair(model, PAIRS):
        (target,) = (target for own, target in PAIRS if own == source)
        for step, token in enumerate((*target, 2)):
            rows = model.projection.weight[token].norm().item()
            for place in range(len(source)):
                wanted = rows * 0.5 ** (step + 1 + len(source) - place)
                assert norms[step, place] == pytest.approx(wanted, rel=1e-5)


def test_a_constant_factor_a_step_is_a_straight_fall():
    model = Halving()
    with torch.no_grad():
        model.projection.weight.fill_(1.0)
    found = mean_by_distance(model, PAIRS, farthest(PAIRS))
    there = np.flatnonzero(found.count)
    np.testing.assert_allclose(found.norm[there], 6**0.5 * 0.5**there, rtol=1e-5)
    assert np.isnan(found.norm[:2]).all() and found.count.sum() == 4 * 4 + 2 * 5 + 1 * 2


def test_distances_count_the_tokens_read_and_written_on_the_way():
    np.testing.assert_array_equal(distances(3, 2), [[4, 3, 2], [5, 4, 3]])
    assert distances(3, 3).max() == farthest([((1, 2, 3), (1, 2))])


@pytest.mark.parametrize(
    "make",
    [
        lambda: random_recurrent(),
        lambda: random_recurrent(cell="gru", attention="additive"),
        lambda: random_recurrent(attention="dot", input_feeding=True),
        lambda: random_convolutional(),
        lambda: random_model(),
        lambda: random_model(causal_mask=False),
    ],
    ids=["vector", "additive", "input feeding", "convolutional", "transformer", "no causal mask"],
)
def test_gradients_in_a_batch_are_those_of_each_pair_alone(make):
    model = make().double()
    for source, norms in each_pair(model, PAIRS):
        (target,) = (target for own, target in PAIRS if own == source)
        np.testing.assert_allclose(norms, gradients_again(model, source, target), rtol=1e-6, atol=1e-12)
        assert check_differences(model, source, target, "").holds


def test_taking_gradients_leaves_none_in_the_model():
    model = random_recurrent(attention="additive")
    list(each_pair(model, PAIRS))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_untrained_weights_are_the_same_each_time_and_leave_the_random_state_alone():
    model = random_recurrent()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one, two, other = untrained(model, 3), untrained(model, 3), untrained(model, 4)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.start.weight, two.start.weight) and not torch.equal(one.start.weight, other.start.weight)
    assert not torch.equal(one.start.weight, model.start.weight) and not one.training


@pytest.mark.parametrize("build", [random_model, random_recurrent, random_convolutional])
def test_an_untrained_model_is_the_one_that_its_training_starts_from(build):
    model = build()
    started = new_state(model.config, TrainConfig(seed=3), torch.device("cpu")).model
    torch.testing.assert_close(untrained(model, 3).state_dict(), started.state_dict(), rtol=0, atol=0)


def test_threads_that_draw_weights_at_once_draw_what_one_alone_does():
    model, before = random_model(), torch.get_rng_state()
    alone = untrained(model, 0).state_dict()
    with ThreadPoolExecutor(8) as threads:
        for drawn in threads.map(lambda _: untrained(model, 0).state_dict(), range(32)):
            torch.testing.assert_close(drawn, alone, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), before)
