"""The checks of alignments and of matched heads: they hold for honest numbers and fail for others."""

import dataclasses
from itertools import permutations

import numpy as np
import pytest
from page_models import REVERSE

from transformer.analysis.comparison.checks import (
    check_alignment,
    check_matching,
    check_written,
    has_lowering_ring,
    n_edits,
)
from transformer.analysis.comparison.head_matching import Read, assignment, match_heads
from transformer.inspection.token_alignment import align
from transformer.interventions import parse_intervention
from transformer.lab import load


def reads(seed: int, layers: int = 2, heads: int = 2) -> list[Read]:
    generator = np.random.default_rng(seed)
    found = []
    for length in (5, 7):
        weights = generator.dirichlet(np.full(length, 0.3), size=(layers, heads, length)).astype(np.float32)
        mask = np.ones((layers, length, length), dtype=bool)
        mask[:, 0, 1:] = False
        weights = np.where(mask[:, None], weights, 0)
        found.append(Read(weights / weights.sum(axis=-1, keepdims=True), mask))
    return found


@pytest.mark.parametrize(("a", "b", "edits"), [("kitten", "sitting", 3), ("", "abc", 3), ("same", "same", 0)])
def test_edits_are_counted(a, b, edits):
    assert n_edits(a, b) == edits
    assert check_alignment("", a, b, align(a, b)).holds


def test_an_alignment_with_more_edits_or_a_missing_element_fails():
    assert not check_alignment("", "ab", "ab", ((0, None), (1, 0), (None, 1))).holds
    assert not check_alignment("", "ab", "ab", ((0, 0),)).holds
    assert not check_alignment("", "ab", "ab", ((1, 1), (0, 0))).holds


@pytest.mark.parametrize("switch", ["off:decoder.0.cross:0,1", "mask:causal"])
def test_an_output_holds_and_a_wrong_token_or_probability_fails(untrained_models, switch):
    lab = load(REVERSE)

    def failing(seen, shown):
        return [check.claim for check in check_written("Before", lab.model, seen, shown) if not check.holds]

    for seen in (lab.inspect("a b c"), lab.inspect("a b c", [parse_intervention(switch)])):
        assert not failing(seen, seen.probabilities)
        other = dataclasses.replace(seen, target_ids=(9, *seen.target_ids[1:]))
        assert "Before: each token is the most probable one" in failing(other, seen.probabilities)
        assert failing(seen, seen.probabilities * 0.9) == [
            "Before: each token has this probability, given those before it"
        ]


@pytest.mark.parametrize("shape", [(5, 5), (3, 6), (6, 3), (1, 1)])
def test_every_pairing_but_the_best_has_a_ring_that_lowers_its_sum(shape):
    costs = np.random.default_rng(sum(shape)).random(shape)
    places = [*range(shape[1]), *[None] * max(0, shape[0] - shape[1])]
    every = set(permutations(places, shape[0]))
    best = min(every, key=lambda way: sum(costs[row, column] for row, column in enumerate(way) if column is not None))
    assert [way for way in every if not has_lowering_ring(costs, way)] == [best] == [assignment(costs)]


def test_a_matching_holds_and_a_wrong_distance_or_pairing_fails():
    first, second = reads(0), reads(1, layers=3)
    honest = match_heads(first, second)

    def failing(**changes):
        checks = check_matching(first, second, dataclasses.replace(honest, **changes))
        return [check.claim for check in checks if not check.holds]

    assert not failing()
    moved = honest.distances.copy()
    moved[1, 2] += 0.01
    assert "Each distance is the mean Jensen-Shannon distance of two heads' rows" in failing(distances=moved)
    other = (*honest.partners[1:], honest.partners[0])
    assert "No pairing of all heads has a smaller sum of distances" in failing(partners=other)
    assert failing(partners=(0,) * len(honest.heads))[0] == "No head is in two pairs"
    assert failing(n_rows=honest.n_rows + 1) == ["The number of compared rows"]
    assert failing(heads=honest.heads[::-1]) == ["Rows and columns are the heads in the order of the layers"]
