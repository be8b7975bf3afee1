"""Checks of positions hold for what is right, and notice what is wrong."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_ids, random_model
from view_examples import checks_of, data_of, decoding

from transformer.analysis.positions.checks import (
    check_decomposition,
    check_interval,
    check_map,
    check_rotation,
    check_similarity,
    check_sinusoids,
)
from transformer.analysis.positions.lengths import wilson
from transformer.analysis.positions.score_decomposition import decompose_scores
from transformer.analysis.positions.tables import fit_shift, rotation, similarity, sinusoids
from transformer.interventions import EditPositions, compile_interventions
from transformer.views.positions_scores import ScoreParts


@pytest.mark.parametrize(("width", "base"), [(16, 10_000), (6, 100)])
def test_a_wrong_entry_of_the_sinusoids_is_found(width, base):
    table = sinusoids(20, width, base).copy()
    assert check_sinusoids(table, base)[0].holds
    assert not check_sinusoids(table, base * 2)[0].holds
    table[7, 3] += 0.001
    assert check_sinusoids(table, base)[0].measured == pytest.approx(0.001, abs=1e-5)


@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_a_wrong_similarity_is_found(kind):
    table = np.random.default_rng(0).normal(size=(70, 6)).astype(np.float32)
    matrix = similarity(table, kind).copy()
    assert all(check.holds for check in check_similarity(table, matrix, kind))
    matrix[2, 5] += 0.01
    assert not any(check.holds for check in check_similarity(table, matrix, kind))


def test_the_inverse_rotation_and_another_map_are_found():
    turn = rotation(8, 3)
    assert all(check.holds for check in check_rotation(turn, 20, 3, 10_000))
    assert [check.holds for check in check_rotation(turn.T, 20, 3, 10_000)] == [True, False]
    table = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    fit = fit_shift(table, 3)
    assert check_map(table, 3, fit.matrix, "").holds
    assert not check_map(table, 4, fit.matrix, "").holds and not check_map(table, 3, 1.001 * fit.matrix, "").holds


def test_swapped_ends_of_an_interval_are_found():
    right, count = np.array([0, 3, 10, 0]), np.array([10, 10, 10, 0])
    low, high = np.array([wilson(r, n) for r, n in zip(right.tolist(), count.tolist(), strict=True)]).T
    assert check_interval(right, count, low, high).holds
    assert not check_interval(right, count, high, low).holds
    assert not check_interval(right, count, low, high + 1e-4).holds


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"scale_scores": False}, {"norm": "none"}], ids=str)
def test_each_part_of_a_score_is_computed_again(stack, changes):
    model, switches = random_model(**changes), (EditPositions("encoder", "shift", 2),)
    source, target = random_ids(1, 6), random_ids(1, 5)
    found = decompose_scores(model, source, target, stack, tap=compile_interventions(switches, model))
    parts, scores = (np.where(found.mask, part, np.nan) for part in (found.parts[:, 2], found.scores[2]))

    def verdicts(parts, scores, switches=switches, head=2):
        ids = source[0].tolist(), target[0].tolist()
        checks = check_decomposition(model, *ids, switches, stack, head, parts=parts, scores=scores)
        return [check.holds for check in checks]

    assert verdicts(parts, scores) == [True] * 6
    assert verdicts(parts[::-1], scores) == [False] * 4 + [True] * 2, "the sum is the same"
    assert verdicts(parts[[0, 2, 1, 3]], scores) == [True, False, False, True, True, True]
    assert not any(verdicts(parts, scores, head=1))
    if stack == "encoder":
        assert verdicts(parts, scores, switches=())[1:] == [False] * 5


def test_the_badge_of_the_score_parts_turns_red_when_they_are_reversed():
    view, subject = ScoreParts(stack="encoder", head=0), decoding()()
    data = data_of(view, subject)
    assert all(check.holds for check in checks_of(view, subject, data))
    wrong = replace(data, parts=data.parts[::-1])
    assert [check.holds for check in checks_of(view, subject, wrong)].count(False) >= 4


def test_the_recomputed_parts_are_in_double_precision():
    model = random_model()
    found = decompose_scores(model, random_ids(1, 4), random_ids(1, 3), "encoder")
    assert found.parts.dtype == np.float64 and next(model.parameters()).dtype == torch.float32
