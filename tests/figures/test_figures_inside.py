"""The pictures of a step's inside and of two readings hold the numbers that they are given."""

import numpy as np
import pytest

from transformer.figures import theme
from transformer.figures.steps.logit_lens import Depth, Share, contribution_bars, lens_figure
from transformer.figures.steps.teacher_forcing import SMALL, Measured, exposure_figure, losses_figure

DEPTHS = [
    Depth("before layer 0", ("a", "<b>"), (0.5, 0.25), 7, 0.01),
    Depth("after layer 0", ("▁il", "</s>"), (0.99, 1e-4), 1, 0.99),
]


@pytest.mark.parametrize("dark", [False, True])
def test_the_lens_has_a_row_for_each_depth_with_rank_and_tokens(dark):
    fig = lens_figure(DEPTHS, "▁il", dark=dark)
    heat, ranks = fig.data
    np.testing.assert_array_equal(heat.z, [[0.5, 0.25], [0.99, 1e-4]])
    assert list(ranks.text) == ["7 (0.01)", "1 (0.99)"] and fig.layout.xaxis.ticktext[0] == "rank of il"
    assert any("&lt;b&gt;" in note.text for note in fig.layout.annotations) and len(fig.layout.annotations) == 4
    with pytest.raises(ValueError, match="every depth needs 2 tokens"):
        lens_figure([DEPTHS[0], Depth("x", ("a",), (1.0,), 1, 1.0)], "a")


@pytest.mark.parametrize("dark", [False, True])
def test_contributions_are_bars_around_zero_and_the_sum_stands_out(dark):
    shares = [Share("cross 1 · head 0", 2.5, "cross", 1.0), Share("biases", -0.5), Share("together", 2.0, None, 0.4)]
    fig = contribution_bars(shares, raised="▁il", lowered="<x>", before_name="without", dark=dark)
    bars, marks = fig.data
    assert list(bars.x) == [2.5, -0.5, 2.0] and list(bars.text) == ["+2.50", "−0.50", "+2.00"]
    assert bars.marker.color[0] == theme.kind_colour("cross", dark)
    assert bars.marker.color[2] == theme.palette(dark).accent
    assert list(marks.x) == [1.0, 0.4] and "without: +1" in marks.customdata[0]
    assert "&lt;x&gt;" in fig.layout.xaxis.title.text


def test_losses_stand_beside_each_other_with_the_divergence_between():
    fig = losses_figure(["a", "<b>"], np.array([0.1, 0.2]), np.array([0.1, np.nan]), divergence=1)
    assert list(fig.data[0].y) == [0.1, 0.2] and np.isnan(fig.data[1].y[1])
    assert fig.layout.shapes[0].x0 == 1 and "&lt;b&gt;" in fig.layout.xaxis.ticktext[1]
    assert not losses_figure(["a"], np.ones(1), np.ones(1), divergence=None).layout.shapes
    with pytest.raises(ValueError, match="2 tokens need as many losses"):
        losses_figure(["a", "b"], np.ones(1), np.ones(1), divergence=None)


@pytest.mark.parametrize("dark", [False, True])
def test_exposure_has_its_interval_and_both_shares(dark):
    at = [Measured(0, 50, 50, 0.0, -0.1, 0.1, 1.0, 1.0), Measured(1, 40, 38, 0.5, 0.2, 0.8, 0.9, 0.7)]
    bias, forced, free = exposure_figure(at, dark=dark).data
    assert list(bias.y) == [0.0, 0.5] and bias.error_y.array[1] == pytest.approx(0.3)
    assert list(forced.y) == [1.0, 0.9] and list(free.y) == [1.0, 0.7] and "38 of 40" in bias.customdata[1]


def test_a_bias_of_next_to_nothing_does_not_fill_the_axis():
    tiny = Measured(0, 50, 50, 5e-8, -1e-8, 1e-7, 1.0, 1.0)
    assert list(exposure_figure([tiny]).layout.yaxis.range) == [-SMALL, SMALL]
    assert exposure_figure([tiny, Measured(1, 40, 38, 0.5, 0.2, 0.8, 0.9, 0.7)]).layout.yaxis.range is None
