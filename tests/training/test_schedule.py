"""The learning rate: the paper's equation, and what every course has in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.config import TrainConfig, wsd_plateau
from transformer.training.schedule import learning_rate, paper_peak

KINDS = ("paper", "constant", "cosine", "wsd")


def rate(step: int, kind: str = "paper", *, warmup: int = 100, max_steps: int = 1_000) -> float:
    return learning_rate(step, kind=kind, peak=2e-3, warmup_steps=warmup, max_steps=max_steps)


@given(step=st.integers(1, 1_000_000), d_model=st.integers(1, 4_096), warmup=st.integers(1, 10_000))
def test_with_the_papers_peak_the_paper_schedule_is_equation_3(step, d_model, warmup):
    expected = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    peak = paper_peak(d_model, warmup)
    found = learning_rate(step, kind="paper", peak=peak, warmup_steps=warmup, max_steps=1)
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_base_models_peak_is_seven_ten_thousandths():
    assert paper_peak(512, 4_000) == pytest.approx(7.0e-4, rel=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_peak_is_reached_at_the_end_of_a_linear_warm_up(kind):
    assert rate(100, kind) == 2e-3
    assert rate(25, kind) == pytest.approx(0.5e-3)
    assert rate(1, kind) == pytest.approx(2e-5)


@given(step=st.integers(1, 2_000), kind=st.sampled_from(KINDS), warmup=st.integers(0, 1_500))
def test_the_rate_is_never_negative_nor_above_the_peak(step, kind, warmup):
    assert 0 <= rate(step, kind, warmup=warmup) <= 2e-3


@given(step=st.integers(100, 2_000), kind=st.sampled_from(KINDS))
def test_after_the_warm_up_the_rate_never_rises(step, kind):
    assert rate(step + 1, kind) <= rate(step, kind)


def test_inverse_square_root_halves_when_the_steps_quadruple():
    assert rate(400) == pytest.approx(1e-3)


def test_cosine_is_half_way_at_half_time_and_ends_at_zero():
    assert rate(550, "cosine") == pytest.approx(1e-3)
    assert rate(1_000, "cosine") == pytest.approx(0, abs=1e-18)
    assert rate(1_200, "cosine") == pytest.approx(0, abs=1e-18)


def test_wsd_stays_at_the_peak_and_falls_straight_to_zero_over_the_last_60_percent():
    assert rate(100, "wsd") == rate(400, "wsd") == 2e-3
    assert rate(700, "wsd") == pytest.approx(1e-3)
    assert rate(1_000, "wsd") == rate(1_200, "wsd") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_warm_up_the_first_step_has_the_peak(kind):
    assert rate(1, kind, warmup=0) == pytest.approx(2e-3, rel=1e-5)


def test_a_step_before_the_first_is_refused():
    with pytest.raises(ValueError, match=r"step \(0\) must be at least 1"):
        rate(0)


@pytest.mark.parametrize("max_steps", [1, 2, 5, 10, 35, 777, 1_000, 999_999])
def test_the_longest_warm_up_that_wsd_takes_is_followed_by_its_peak(max_steps):
    longest = wsd_plateau(max_steps)
    if longest:
        assert rate(longest, "wsd", warmup=longest, max_steps=max_steps) == pytest.approx(2e-3)
    assert TrainConfig(schedule="wsd", warmup_steps=longest, max_steps=max_steps).warmup_steps == longest
    beyond = rf"warmup_steps \({longest + 1}\) must end by step {longest:,}, from which schedule \('wsd'\) falls"
    with pytest.raises(ValueError, match=beyond):
        TrainConfig(schedule="wsd", warmup_steps=longest + 1, max_steps=max_steps)
    assert rate(longest + 1, "wsd", warmup=longest + 1, max_steps=max_steps) < 2e-3  # it would never reach its peak
