"""The proofs of alignments and of matched heads: they hold for honest numbers and fail for others."""

import dataclasses
from itertools import permutations

import numpy as np
import pytest
from page_models import REVERSE

from transformer.analysis.comparison.checks import (
    assignment_by_rings,
    check_alignment,
    check_matching,
    check_outputs,
    n_edits,
)
from transformer.analysis.comparison.head_matching import Read, match_heads
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
def test_both_outputs_hold_and_a_wrong_token_probability_or_alignment_fails(untrained_models, switch):
    lab = load(REVERSE)
    shown = lab.compare("a b c", [parse_intervention(switch)])

    def failing(**changes):
        claims = [p.claim for p in check_outputs(lab.model, dataclasses.replace(shown, **changes)) if not p.holds]
        return claims

    assert not failing()
    for name, seen in (("before", shown.before), ("after", shown.after)):
        other = dataclasses.replace(seen, target_ids=(9, *seen.target_ids[1:]))
        assert f"{name.capitalize()}: each token is the most probable one" in failing(**{name: other})
        other = dataclasses.replace(seen, log_probs=seen.log_probs - 0.1)
        assert failing(**{name: other}) == [f"{name.capitalize()}: each token has the probability under it"]


@pytest.mark.parametrize("shape", [(5, 5), (3, 6), (6, 3), (1, 1)])
def test_exchanges_along_rings_end_at_the_least_sum_of_all_pairings(shape):
    costs = np.random.default_rng(sum(shape)).random(shape)
    found, _ = assignment_by_rings(costs)
    kept = [(row, column) for row, column in enumerate(found) if column is not None]
    assert len({column for _, column in kept}) == len(kept) == min(shape)
    tall = costs if shape[0] <= shape[1] else costs.T
    every = (sum(tall[i, j] for i, j in enumerate(p)) for p in permutations(range(tall.shape[1]), tall.shape[0]))
    assert sum(costs[row, column] for row, column in kept) == pytest.approx(min(every), abs=1e-12)


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
    worst = tuple(map(int, honest.distances.argmax(axis=1)))
    assert "No pairing of all heads has a smaller sum of distances" in failing(partners=worst)
    assert failing(partners=(0,) * len(honest.heads))[0] == "Every head is in one pair at most"
    assert failing(n_rows=honest.n_rows + 1) == ["Each is compared on as many rows as it says"]
    assert failing(heads=honest.heads[::-1]) == ["Each row and column is the head that it says"]
