"""Rollout against a walk over every path, and its rows, its causality and its limits."""

import itertools

import numpy as np
import pytest
import torch
from numpy import ndarray
from random_models import half_trained_model, random_model

from transformer.analysis.attention.rollout import arrives, cross_rollout, rollout, sees_later
from transformer.decoding.greedy import greedy
from transformer.interventions import DisableMask, compile_interventions
from transformer.model.taps import Recorder


def attention(layers: int, heads: int, queries: int, keys: int, seed: int = 0, causal: bool = False) -> ndarray:
    weights = np.random.default_rng(seed).dirichlet(np.ones(keys), (layers, heads, queries)).astype(np.float32)
    if causal:
        weights = np.tril(weights)
        weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def step_probability(layer: ndarray, start: int, end: int, residual: bool) -> float:
    """Returns the share of `start`'s new state that comes from `end`: the mean over heads, halved with a residual."""
    mean = sum(float(head[start, end]) for head in layer) / len(layer)
    return mean / 2 + (start == end) / 2 if residual else mean


def all_paths(weights: ndarray, residual: tuple[bool, ...]) -> ndarray:
    """The sum over every path through the layers, from the last one down to the input, of the product of its steps."""
    n = weights.shape[-1]
    found = np.zeros((n, n))
    for path in itertools.product(range(n), repeat=len(weights) + 1):
        product = 1.0
        for depth, (above, under) in enumerate(itertools.pairwise(path)):
            layer = len(weights) - 1 - depth
            product *= step_probability(weights[layer], above, under, residual[layer])
        found[path[0], path[-1]] += product
    return found


@pytest.mark.parametrize("residual", [(True, True, True), (False, True, False)])
@pytest.mark.parametrize("causal", [False, True])
def test_rollout_is_the_sum_over_all_paths(residual, causal):
    weights = attention(3, 2, 4, 4, causal=causal)
    found = rollout(weights, residual)
    np.testing.assert_allclose(found[-1], all_paths(weights, residual), atol=1e-6)
    np.testing.assert_allclose(found[0], all_paths(weights[:1], residual[:1]), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)
    if causal:
        assert not np.triu(found, k=1).any()


@pytest.mark.parametrize("residual", [(True, True), (False, True), (True, False), (False, False)])
def test_where_nothing_may_arrive_is_where_no_path_leads(residual):
    mask = np.random.default_rng(4).random((2, 4, 4)) < 0.3
    found = arrives(mask, residual)
    np.testing.assert_array_equal(found, all_paths(mask[:, None].astype(float), residual) > 0)
    np.testing.assert_array_equal(found.diagonal().all(), all(residual))


def test_heads_that_are_off_leave_more_to_the_residual():
    weights = attention(1, 2, 3, 3)
    half_off = weights.copy()
    half_off[0, 1] = 0
    expected = (half_off[0].mean(axis=0) + np.eye(3)) / (half_off[0].mean(axis=0) + np.eye(3)).sum(axis=1)[:, None]
    np.testing.assert_allclose(rollout(half_off, [True])[0], expected, atol=1e-6)
    np.testing.assert_array_equal(rollout(np.zeros((2, 2, 3, 3), np.float32), [True, True])[-1], np.eye(3))


def slow_cross(
    encoder: ndarray, own: ndarray, cross: ndarray, kept_self: tuple[bool, ...], kept_cross: tuple[bool, ...]
) -> tuple[list, list]:
    """The same by a recursion on single positions: what position i holds after layer l, as two lists of shares."""
    n_query, n_source = own.shape[-1], encoder.shape[-1]

    def after_cross(layer: int, i: int) -> tuple[list[float], list[float]]:
        if layer < 0:
            return [0.0] * n_source, [float(i == j) for j in range(n_query)]
        source, target = after_self(layer, i)
        looked = [
            sum(
                sum(float(head[i, j]) for head in cross[layer]) / len(cross[layer]) * encoder[j, s]
                for j in range(n_source)
            )
            for s in range(n_source)
        ]
        if not kept_cross[layer]:
            return looked, [0.0] * n_query
        return [(a + b) / 2 for a, b in zip(looked, source, strict=True)], [t / 2 for t in target]

    def after_self(layer: int, i: int) -> tuple[list[float], list[float]]:
        parts = [
            (step_probability(own[layer], i, j, kept_self[layer]), after_cross(layer - 1, j)) for j in range(n_query)
        ]
        return (
            [sum(share * source[s] for share, (source, _) in parts) for s in range(n_source)],
            [sum(share * target[t] for share, (_, target) in parts) for t in range(n_query)],
        )

    rows = [after_cross(len(own) - 1, i) for i in range(n_query)]
    return [source for source, _ in rows], [target for _, target in rows]


@pytest.mark.parametrize(("kept_self", "kept_cross"), [((True, True), (True, True)), ((False, True), (True, False))])
def test_rollout_through_both_stacks_is_the_recursion_over_positions(kept_self, kept_cross):
    encoder = rollout(attention(2, 2, 4, 4, seed=1), [True, True])[-1]
    own, cross = attention(2, 3, 3, 3, seed=2, causal=True), attention(2, 3, 3, 4, seed=3)
    found = cross_rollout(encoder, own, cross, kept_self, kept_cross)
    source, target = slow_cross(encoder, own, cross, kept_self, kept_cross)
    np.testing.assert_allclose(found.source[-1], source, atol=1e-6)
    np.testing.assert_allclose(found.target[-1], target, atol=1e-6)
    np.testing.assert_allclose(found.source.sum(axis=-1) + found.target.sum(axis=-1), 1, atol=1e-9)


def test_without_cross_attention_nothing_of_the_source_arrives():
    own = attention(2, 2, 3, 3, causal=True)
    found = cross_rollout(np.eye(4), own, np.zeros((2, 2, 3, 4), np.float32), [True] * 2, [True] * 2)
    assert not found.source.any()
    np.testing.assert_allclose(found.target, rollout(own, [True] * 2), atol=1e-9)


@pytest.mark.parametrize(("switches", "later"), [((), False), ((DisableMask("causal"),), True)])
def test_it_is_noticed_whether_rows_of_different_steps_belong_together(switches, later):
    model, recorder = half_trained_model(), Recorder()
    tap = compile_interventions(switches, model)
    steps = list(greedy(model, torch.tensor([[5, 9, 4, 2]]), max_length=6, tap=tap))
    target = torch.tensor([[1, *(int(step.tokens[0]) for step in steps[:-1])]])
    chained = recorder if tap is None else (lambda site, x: recorder(site, tap(site, x)))
    with torch.no_grad():
        model(torch.tensor([[5, 9, 4, 2]]), target, tap=chained)
    weights = np.stack([recorder.recording[f"decoder.{layer}.self.weights"][0].numpy() for layer in range(2)])
    assert sees_later(weights) == later


def test_a_real_models_rollout_is_causal_and_sums_to_one():
    model, recorder = random_model(), Recorder()
    source, target = torch.tensor([[5, 9, 4, 7, 2]]), torch.tensor([[1, 6, 8]])
    with torch.no_grad():
        model(source, target, tap=recorder)

    def weights(stack: str, sublayer: str, layers: int) -> ndarray:
        return np.stack([recorder.recording[f"{stack}.{i}.{sublayer}.weights"][0].numpy() for i in range(layers)])

    encoder = rollout(weights("encoder", "self", 2), [True] * 2)[-1]
    found = cross_rollout(
        encoder, weights("decoder", "self", 3), weights("decoder", "cross", 3), [True] * 3, [True] * 3
    )
    assert not np.triu(found.target[-1], k=1).any()
    np.testing.assert_allclose((found.source + 0).sum(axis=-1) + found.target.sum(axis=-1), 1, atol=1e-6)
