"""Effects and margins out of tables of probabilities that are small enough to be worked out on paper."""

import math

import pytest
import torch

from transformer.analysis.heads.importance import _output_effect, head_average
from transformer.analysis.heads.minimal_set import Goal, judged
from transformer.interventions import AblateHeads

HEAD = AblateHeads("decoder", 0, "cross", (1,))
PAD = 0
TARGET = torch.tensor([1, 2, 1])
WITH = torch.tensor([[0.0, 0.5, 0.25, 0.25], [0.0, 0.25, 0.5, 0.25], [0.0, 0.5, 0.25, 0.25]]) + 1e-12
WITHOUT = torch.tensor([[0.6, 0.2, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.2, 0.6]])


def effect():
    return _output_effect(HEAD, WITH.double().log(), WITHOUT.double().log(), TARGET, PAD)


def test_the_first_step_that_changes_is_told_with_its_token_before_and_after():
    found = effect()
    assert found.step == 1 and found.instead == 1  # at step 0 padding is likeliest, which is never written
    assert found.before == pytest.approx(0.5) and found.after == pytest.approx(0.1)


def test_the_log_probability_changes_by_the_sum_over_the_tokens():
    assert effect().log_prob == pytest.approx(math.log(0.2 / 0.5) + math.log(0.1 / 0.5) + math.log(0.1 / 0.5), abs=1e-6)


def test_the_divergence_is_that_of_the_output_with_the_head_from_the_one_without_on_average():
    each = [sum(p * math.log(p / q) for p, q in zip(a, b, strict=True)) for a, b in zip(WITH, WITHOUT, strict=True)]
    assert effect().kl_divergence == pytest.approx(float(sum(each)) / 3, abs=1e-6)


def test_where_no_token_changes_the_largest_move_is_told():
    near = torch.tensor([[0.1, 0.5, 0.2, 0.2], [0.1, 0.2, 0.4, 0.3], [0.1, 0.6, 0.2, 0.1]])
    found = _output_effect(HEAD, WITH.double().log(), near.double().log(), TARGET, PAD)
    assert found.instead is None and found.step in (1, 2)
    assert abs(found.after - found.before) == pytest.approx(0.1, abs=1e-6)


def test_the_average_is_over_the_heads_of_the_layer_that_is_asked_for():
    weights = torch.arange(16, dtype=torch.float32).reshape(2, 2, 2, 2).numpy()
    assert head_average(weights, 1).tolist() == [[10, 11], [12, 13]]


def tables(*rows):
    return torch.tensor(rows, dtype=torch.float64)[None].log()


def test_the_margin_of_any_change_is_that_of_the_step_nearest_to_it():
    margin, hit = judged(tables([0.1, 0.6, 0.3], [0.1, 0.4, 0.5]), torch.tensor([1, 2]), Goal(None, None), PAD)
    assert margin.item() == pytest.approx(math.log(0.5 / 0.4)) and not hit
    margin, hit = judged(tables([0.1, 0.6, 0.3], [0.1, 0.5, 0.4]), torch.tensor([1, 2]), Goal(None, None), PAD)
    assert margin.item() == pytest.approx(math.log(0.4 / 0.5)) and hit


def test_a_token_at_a_step_is_reached_only_where_all_before_it_stays():
    goal = Goal(1, 1)
    stays, changes = [0.1, 0.6, 0.3], [0.1, 0.3, 0.6]
    reached = [0.1, 0.5, 0.4]
    assert judged(tables(stays, reached), torch.tensor([1, 2]), goal, PAD)[1]
    assert not judged(tables(changes, reached), torch.tensor([1, 2]), goal, PAD)[1]
    assert not judged(tables(stays, [0.1, 0.4, 0.5]), torch.tensor([1, 2]), goal, PAD)[1]


def test_padding_is_never_what_is_written_instead():
    margin, hit = judged(tables([0.7, 0.2, 0.1]), torch.tensor([1]), Goal(0, None), PAD)
    assert margin.item() == pytest.approx(math.log(0.2 / 0.1)) and not hit
