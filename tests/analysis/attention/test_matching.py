"""Heads of two models paired: the best pairing of all, on distances that agree with their definition."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.analysis.comparison.head_matching import Matching, Read, assignment, match_heads

RNG = np.random.default_rng(0)


def best_by_trying_all(costs):
    """The least sum over all ways to give each row a column of its own."""
    rows, columns = costs.shape
    if rows > columns:
        costs, rows, columns = costs.T, columns, rows
    return min(sum(costs[r, c] for r, c in enumerate(way)) for way in permutations(range(columns), rows))


def cost(costs, chosen):
    return sum(costs[row, column] for row, column in enumerate(chosen) if column is not None)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10_000), st.booleans())
def test_the_assignment_is_as_cheap_as_the_cheapest_of_all(rows, columns, seed, with_ties):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 3, (rows, columns)).astype(float) if with_ties else rng.normal(size=(rows, columns))
    chosen = assignment(costs)
    taken = [column for column in chosen if column is not None]
    assert len(taken) == len(set(taken)) == min(rows, columns)
    assert cost(costs, chosen) == pytest.approx(best_by_trying_all(costs), abs=1e-12)


def test_a_large_assignment_finds_the_hidden_permutation():
    hidden = RNG.permutation(48)
    costs = RNG.random((48, 48)) + 1
    costs[np.arange(48), hidden] = 0
    assert assignment(costs) == tuple(hidden)


def test_greedy_would_do_worse():
    costs = np.array([[0.0, 1.0], [1.0, 10.0]])
    assert assignment(costs) == (1, 0)


def test_costs_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="finite"):
        assignment(np.array([[np.nan]]))


def read(layers, heads, length=5, causal=False):
    mask = np.ones((layers, length, length), bool)
    if causal:
        mask = np.tril(mask)
    scores = np.where(mask[:, None], RNG.normal(size=(layers, heads, length, length)) * 2, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return Read((weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32), mask)


def shuffled(sentence, order):
    """The same heads in another order, as another seed might have dealt them out."""
    layers, heads, *size = sentence.weights.shape
    return Read(sentence.weights.reshape(-1, *size)[order].reshape(layers, heads, *size), sentence.mask)


@pytest.mark.parametrize("causal", [False, True])
def test_shuffled_heads_find_themselves_again(causal):
    order = RNG.permutation(6)
    first = [read(2, 3, causal=causal) for _ in range(3)]
    found = match_heads(first, [shuffled(sentence, order) for sentence in first])
    for index, partner in enumerate(found.partners):
        assert order[partner] == index
        assert found.distances[index, partner] == pytest.approx(0, abs=1e-4)
    assert found.n_rows == 3 * (4 if causal else 5)  # the first row of a causal mask has one key: no choice
    assert found.partner((1, 2)) == divmod(int(np.flatnonzero(order == 5)[0]), 3)


def test_distances_are_those_of_the_definition():
    a, b = read(1, 2), read(1, 2)
    found = match_heads([a], [b])
    p, q = a.weights[0, 1].astype(float), b.weights[0, 0].astype(float)
    mean = (p + q) / 2
    divergence = 0.5 * (p * np.log2(p / mean)).sum(axis=1) + 0.5 * (q * np.log2(q / mean)).sum(axis=1)
    assert found.distance((0, 1), (0, 0)) == pytest.approx(np.sqrt(divergence).mean(), rel=1e-6)


def test_models_of_different_size_leave_heads_over():
    sentence = read(2, 2)
    other = Read(sentence.weights[:1], sentence.mask[:1])
    found = match_heads([sentence], [other])
    assert found.partner((0, 1)) == (0, 1) and found.partner((1, 0)) is None
    assert found.nearest((1, 0)) == found.others[int(np.argmin(found.distances[found.heads.index((1, 0))]))]
    assert isinstance(found, Matching) and found.distances.shape == (4, 2)


def test_what_cannot_be_compared_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="1 sentences of one model and 0 of the other"):
        match_heads([read(1, 1)], [])
    with pytest.raises(ValueError, match="do not stand for the same tokens"):
        match_heads([read(1, 1, 4)], [read(1, 1, 5)])
    with pytest.raises(ValueError, match="nothing tells these heads apart"):
        match_heads([read(1, 1, 1)], [read(1, 1, 1)])
