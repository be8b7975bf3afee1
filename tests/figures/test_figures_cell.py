"""A cell's figures show the arrays they are given."""

import numpy as np
import pytest

from transformer.figures.attention.entry import products_figure, shares_figure


@pytest.mark.parametrize("size", [4, 32])
@pytest.mark.parametrize("dark", [False, True])
def test_q_k_and_their_product_are_the_three_rows(size: int, dark: bool) -> None:
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, size)).astype(np.float32)
    rows = products_figure(q, k, q.astype(float) * k, kind="cross", dark=dark).data
    for trace, values in zip(rows, (q, k, q.astype(float) * k), strict=True):
        np.testing.assert_array_equal(trace.z[0], values)
        assert trace.zmin == -trace.zmax
        assert (trace.texttemplate is None) == (size > 16)
    assert np.float32(rows[0].customdata[0][1].rsplit("= ", 1)[1]) == q[1]


def test_vectors_of_zeros_can_be_drawn() -> None:
    nothing = np.zeros(4, dtype=np.float32)
    assert products_figure(nothing, nothing, nothing, kind="cross").data[2].zmax == 1


def test_shares_are_bars_with_their_numbers() -> None:
    fig = shares_figure(["this cell", "bias"], [1.2, -0.2], kind="cross")
    assert fig.data[0].x == (1.2, -0.2) and fig.data[0].text == ("+1.200", "\N{MINUS SIGN}0.200")
    assert fig.layout.yaxis.ticktext == ("this cell", "bias")
    assert fig.layout.xaxis.range[0] < -0.2


def test_shares_without_names_are_refused() -> None:
    with pytest.raises(ValueError, match="2 shares need as many names, not 1"):
        shares_figure(["this cell"], [0.5, 0.5], kind="cross")
