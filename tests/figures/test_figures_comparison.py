"""Tests of the figures of a comparison: the traces hold the numbers that were passed in."""

import numpy as np
import pytest

from transformer.figures import theme
from transformer.figures.attention.comparison import aligned_figure, probabilities_figure
from transformer.figures.attention.matrix import WIDTH, difference_figure

TOKENS = ["▁il", "<b>x</b>", "</s>"]
BEFORE, AFTER, KL = np.array([0.9, 0.2, 0.5]), np.array([0.1, 0.6, 0.5]), np.array([2.0, 0.5, 0.0])


def markers(fig):
    return {trace.name: trace for trace in fig.data if trace.type == "scatter" and trace.mode == "markers"}


@pytest.mark.parametrize("dark", [False, True])
def test_probabilities_and_divergences_are_drawn_as_they_are_with_falls_blue_and_rises_vermilion(dark):
    fig = probabilities_figure(TOKENS, BEFORE, AFTER, KL, dark=dark)
    found = markers(fig)
    assert list(found["before"].y) == BEFORE.tolist() and list(found["after"].y) == AFTER.tolist()
    (bars,) = (trace for trace in fig.data if trace.type == "bar")
    assert list(bars.y) == KL.tolist() and fig.layout.yaxis2.title.text == "KL, nats"
    scale = theme.diverging(dark)
    assert list(found["after"].marker.color) == [scale[1][1], scale[-2][1], theme.palette(dark).quiet]


@pytest.mark.parametrize("n", [3, 20, 43])
def test_the_probabilities_of_forty_tokens_fit_their_column(n):
    fig = probabilities_figure(["t"] * n, np.zeros(n), np.ones(n), np.ones(n))
    assert fig.layout.meta["smallest_width"] <= WIDTH
    assert (WIDTH - fig.layout.margin.l - fig.layout.margin.r) / n >= fig.layout.xaxis.tickfont.size


def test_markup_in_a_token_stays_text():
    fig = probabilities_figure(TOKENS, BEFORE, AFTER, KL)
    assert "&lt;b&gt;x&lt;/b&gt;" in markers(fig)["after"].customdata[1]
    assert "<b>x" not in "".join(fig.layout.xaxis.ticktext)


def test_as_many_numbers_as_tokens_are_needed():
    with pytest.raises(ValueError, match="3 tokens need as many probabilities"):
        probabilities_figure(TOKENS, BEFORE[:2], AFTER, KL)


@pytest.mark.parametrize("n", [3, 16, 40])
def test_a_difference_is_drawn_around_zero_and_fits_its_column_up_to_forty_tokens(n):
    rng = np.random.default_rng(n)
    before, after = rng.random((2, n, n)).astype(np.float32)
    tokens = [f"because{i}" for i in range(n)]
    fig = difference_figure(before, after, tokens, tokens, kind="cross")
    trace = fig.data[0]
    np.testing.assert_array_equal(trace.z, after - before)
    assert trace.zmin == -trace.zmax == -np.abs(after - before).max()
    assert fig.layout.meta["smallest_width"] <= WIDTH
    margin = fig.layout.margin
    square = (fig.layout.height - margin.t - margin.b) / n
    assert fig.layout.meta["smallest_width"] <= margin.l + margin.r + n * square + 1


def test_a_matrix_of_a_column_shrinks_until_its_labels_would_touch():
    n = 14
    before, after = np.zeros((n, n), np.float32), np.ones((n, n), np.float32)
    fig = difference_figure(before, after, ["traversé"] * n, ["because"] * n, kind="cross")
    margin, meta = fig.layout.margin, fig.layout.meta
    cell = (meta["smallest_width"] - margin.l - margin.r) / n
    assert fig.layout.yaxis.tickfont.size - 0.1 <= cell < (fig.layout.height - margin.t - margin.b) / n
    assert meta["smallest_width"] <= 342  # what a phone of 390 pixels leaves
    assert meta["squares"] == {"rows": n, "columns": n, "beside": margin.l + margin.r, "above": margin.t + margin.b}


def test_rounding_has_no_colour():
    before = np.full((2, 2), 0.5, dtype=np.float32)
    trace = difference_figure(before, before + np.float32(1e-7), ["a", "b"], ["a", "b"], kind="cross").data[0]
    assert trace.zmax == 1 and 0 < trace.z.max() < 1e-6


@pytest.mark.parametrize("n", [10, 40, 128])
def test_labels_of_a_difference_stand_apart_at_any_length(n):
    before, after = np.zeros((n, n), np.float32), np.ones((n, n), np.float32)
    fig = difference_figure(before, after, [f"q{i}" for i in range(n)], ["k"] * n, kind="cross")
    margin, y = fig.layout.margin, fig.layout.yaxis
    cell = (fig.layout.height - margin.t - margin.b) / n
    gaps = np.diff([*y.tickvals, n])
    assert len(y.ticktext) == len(y.tickvals) and cell * gaps[0] >= y.tickfont.size
    assert (gaps[0] == 1) == (n <= 40)


def test_two_outputs_are_drawn_with_their_probabilities_and_what_differs_is_framed():
    tokens, values = (["il", "<b>"], ["elle"]), (np.array([0.9, 0.4]), np.array([0.7]))
    fig = aligned_figure(tokens, values, ((0, 0), (1, None)), names=("<i>left", "right"))
    (matrix,) = fig.data
    assert np.array_equal(np.array(matrix.z, float), [[0.9, 0.7], [0.4, np.nan]], equal_nan=True)
    assert len(fig.layout.shapes) == 2
    assert "&lt;b&gt;" in matrix.text[1][0] and fig.layout.xaxis.ticktext[0] == "&lt;i&gt;left"
