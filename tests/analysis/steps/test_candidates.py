"""The numbers beside a decoding step, and the bars that show them."""

import numpy as np
import pytest

from transformer.analysis.steps.candidates import candidates, rank
from transformer.figures import theme
from transformer.figures.steps.candidates import candidate_bars, row_bars

PROBABILITIES = np.array([0.5, 0.0, 0.25, 0.125, 0.125])
with np.errstate(divide="ignore"):
    LOG_PROBS = np.log(PROBABILITIES).astype(np.float32)


def test_candidates_are_the_most_probable_and_the_wanted_ones():
    found = candidates(LOG_PROBS, 2, also={1})
    assert found.ids == (0, 2, 1)
    assert found.probabilities == pytest.approx((0.5, 0.25, 0.0))
    assert (found.rest, found.n_rest) == (pytest.approx(0.25), 2)
    assert found.entropy == pytest.approx(1.75 * np.log(2))


def test_ranks_count_the_more_probable_tokens():
    assert [rank(LOG_PROBS, token) for token in range(5)] == [1, 5, 2, 3, 3]


def test_all_tokens_leave_nothing():
    found = candidates(LOG_PROBS, 99)
    assert (found.rest, found.n_rest, len(found.ids)) == (0, 0, 5)
    assert candidates(np.array([0.0, -np.inf], dtype=np.float32), 1).entropy == 0


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("dark", [False, True])
def test_bars_hold_the_probabilities_and_mark_the_written_token(logarithmic, dark):
    fig = candidate_bars(
        ["▁il", "<b>"], [0.75, 0.0], written=0, reference=1, before=[0.5, 1e-3], logarithmic=logarithmic, dark=dark
    )
    bars, marks = fig.data
    assert bars.x[0] == 0.75 and marks.x[0] == 0.5
    assert bars.text == ("0.750", "0 ref")
    assert "&lt;b&gt;" in bars.customdata[1] and "without the switches: 0.001" in marks.customdata[1]
    assert bars.marker.color[0] == theme.palette(dark).accent
    assert (fig.layout.xaxis.type == "log") == logarithmic
    low, high = fig.layout.xaxis.range
    assert low <= (np.log10(0.75) if logarithmic else 0.75) <= high


def test_a_row_of_weights_is_exact_on_hover():
    weights = np.array([0.1, 0.9], dtype=np.float32)
    fig = row_bars(weights, ["a", "</s>"], kind="cross")
    assert list(fig.data[0].x) == weights.tolist()
    assert "weight 0.1" in fig.data[0].customdata[0]
    with pytest.raises(ValueError, match="3 keys do not fit 2 weights"):
        row_bars(weights, ["a", "b", "c"], kind="cross")


def test_as_many_probabilities_as_tokens():
    with pytest.raises(ValueError, match="2 tokens need as many"):
        candidate_bars(["a", "b"], [1.0], written=0)
