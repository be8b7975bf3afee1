"""The pictures of the Paper lab: where a measurement stands against what its claim allows."""

import numpy as np
import pytest

from transformer.experiments.outcome import Outcome
from transformer.figures.experiments import Estimates, claims_figure, findings_figure

ROWS = {
    "above a floor": ((2.0, 1.0, 4.0), (0.0, np.inf), Outcome.HOLDS),
    "below a ceiling": ((-2.0, -4.0, -1.0), (-np.inf, 0.0), Outcome.HOLDS),
    "below a floor": ((-2.0, -4.0, -1.0), (0.0, np.inf), Outcome.FAILS),
    "above a ceiling": ((0.3, 0.2, 0.4), (-np.inf, 0.1), Outcome.FAILS),
    "inside a range": ((0.4, 0.3, 0.5), (0.0, 1.0), Outcome.HOLDS),
    "near its end": ((0.9, 0.85, 0.95), (0.0, 1.0), Outcome.HOLDS),
    "above a range": ((3.0, 2.0, 4.0), (0.0, 1.0), Outcome.FAILS),
    "across": ((0.5, -0.5, 1.5), (0.0, np.inf), Outcome.UNKNOWN),
    "two seeds": ((0.5, np.nan, np.nan), (0.0, np.inf), Outcome.UNKNOWN),
}
"""Estimate with interval, least and most allowed, outcome."""


def estimates() -> Estimates:
    """Returns these rows as the figures take them."""
    numbers = np.array([[*measured, *allowed] for measured, allowed, _ in ROWS.values()]).T
    return Estimates("points", tuple(ROWS), *numbers, tuple(list(Outcome).index(row[2]) for row in ROWS.values()))


def drawn() -> dict[str, tuple[float, float, float]]:
    """Returns the place of each claim's estimate and ends, by its title."""
    figure = claims_figure(list(ROWS), ["points"] * len(ROWS), estimates(), list(Outcome))
    found = {}
    for trace in figure.data:
        for x, row, more, less in zip(trace.x, trace.y, trace.error_x.array, trace.error_x.arrayminus, strict=True):
            found[list(ROWS)[row]] = (x, x - less, x + more)
    return found


@pytest.mark.parametrize(("name", "outcome"), [(name, row[2]) for name, row in ROWS.items() if name != "two seeds"])
def test_an_interval_lies_on_the_side_of_the_border_that_its_outcome_says(name, outcome):
    middle, low, high = drawn()[name]
    assert low < middle < high and max(-low, high) == pytest.approx(1)
    assert (low > 0, high < 0) == (outcome is Outcome.HOLDS, outcome is Outcome.FAILS)


def test_distances_from_the_border_keep_their_proportion():
    assert drawn()["above a floor"] == pytest.approx((0.5, 0.25, 1.0))
    assert drawn()["above a ceiling"] == pytest.approx((-2 / 3, -1, -1 / 3))
    assert drawn()["near its end"] == pytest.approx((2 / 3, 1 / 3, 1))


def test_a_claim_without_an_interval_still_has_its_estimate():
    middle, *ends = drawn()["two seeds"]
    assert middle == 1 and np.isnan(ends).all()


def test_a_row_says_its_number_its_interval_and_what_is_allowed():
    figure = claims_figure(["Heads"], ["nats"], one("8 heads", -0.25, -0.5, -0.125, 0.0, np.inf), list(Outcome))
    label = figure.layout.yaxis.ticktext[0]
    note = figure.layout.annotations[0].text
    assert "<b>Heads</b>" in label and "8 heads: −0.25" in label
    assert note.startswith("−0.5 to −0.12<br>") and "claim: at least 0" in note


def one(name: str, *numbers: float) -> Estimates:
    """Returns a single row that fails."""
    return Estimates("nats", (name,), *(np.array([number]) for number in numbers), (1,))


def test_a_long_name_takes_two_lines_in_a_taller_row():
    short, long = (
        findings_figure([one(name, -0.25, -0.5, -0.125, 0.0, np.inf)], list(Outcome))
        for name in ("8 heads", "time of self-attention over recurrent")
    )
    assert short.layout.yaxis.ticktext[0] == "<b>8 heads</b>"
    assert long.layout.yaxis.ticktext[0] == "<b>time of self-attention over<br>recurrent</b>"
    assert long.layout.height > short.layout.height


def test_the_row_that_decides_is_bold():
    figure = findings_figure([estimates(), estimates()], list(Outcome))
    first, second = figure.layout.yaxis.ticktext, figure.layout.yaxis2.ticktext
    assert [name.startswith("<b>") for name in (*first, *second)] == [True] + [False] * (2 * len(ROWS) - 1)
