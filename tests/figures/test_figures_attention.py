"""Matrices of attention: what is drawn is the array, and every row and column can be told apart."""

import subprocess
import sys

import numpy as np
import plotly.graph_objects as go
import pytest
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.attention.matrix import difference_figure, head_heatmap
from transformer.figures.labels import axis_labels, exact, readable
from transformer.model.kinds import AttentionKind, KindName

QUERIES = ("<s>", "▁il", "▁est")
KEYS = ("▁it", "▁was", "▁it", "</s>")


def softmax_rows(n_queries: int, n_keys: int, seed: int = 0) -> ndarray:
    scores = np.random.default_rng(seed).normal(size=(n_queries, n_keys)) * 3
    weights = np.exp(scores)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def colour_positions(fig: go.Figure) -> tuple[float, float]:
    return fig.data[0].zmin, fig.data[0].zmax


@pytest.mark.parametrize("kind", AttentionKind)
def test_the_matrix_is_the_array_bit_for_bit(kind: KindName) -> None:
    weights = softmax_rows(3, 4)
    drawn = head_heatmap(weights, QUERIES, KEYS, kind=kind).data[0].z
    assert drawn.dtype == np.float32
    assert np.array_equal(drawn, weights)


@pytest.mark.parametrize("kind", AttentionKind)
def test_axes_say_which_is_query_and_which_is_key(kind: KindName) -> None:
    weights = softmax_rows(8, 8)
    fig = head_heatmap(weights, list("abcdefgh"), list("abcdefgh"), kind=kind)
    assert fig.layout.yaxis.title.text.startswith("query")
    assert fig.layout.xaxis.title.text.startswith("key")
    assert fig.layout.xaxis.title.font.color == theme.kind_colour(kind)


def test_the_first_query_is_on_top_and_cells_are_square() -> None:
    fig = head_heatmap(softmax_rows(3, 4), QUERIES, KEYS, kind="cross")
    assert fig.layout.yaxis.range == (2.5, -0.5)
    assert fig.layout.xaxis.range == (-0.5, 3.5)
    assert fig.layout.yaxis.scaleanchor == "x"


def test_two_columns_of_the_same_token_stay_two() -> None:
    fig = head_heatmap(softmax_rows(3, 4), QUERIES, KEYS, kind="cross")
    assert list(fig.data[0].x) == [0, 1, 2, 3]
    assert list(fig.layout.xaxis.tickvals) == [0, 1, 2, 3]
    assert fig.layout.xaxis.ticktext[0] == fig.layout.xaxis.ticktext[2]


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1.0, 0.0, 1.1754944e-38, 2.3e-7, 0.99999994])
def test_hovering_gives_digits_that_read_back_as_the_same_float32(value: float) -> None:
    weights = np.array([[value, 0.5]], dtype=np.float32)
    fig = head_heatmap(weights, ["a"], ["b", "c"], kind="cross")
    digits = fig.data[0].customdata[0][0].rsplit("weight ", 1)[1]
    assert np.float32(digits) == weights[0, 0]
    assert np.float32(exact(weights[0, 0])) == weights[0, 0]


def test_hovering_names_query_and_key() -> None:
    fig = head_heatmap(softmax_rows(3, 4), QUERIES, KEYS, kind="cross")
    text = fig.data[0].customdata[1][2]
    assert "query <b>▁il</b>, row 1" in text
    assert "key <b>▁it</b>, column 2" in text


def test_masked_cells_look_different_from_weights_of_zero() -> None:
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0]], dtype=np.float32)
    mask = np.tril(np.ones((3, 3), dtype=bool))
    fig = head_heatmap(weights, list("abc"), list("abc"), kind="decoder_self", mask=mask)
    cover = fig.data[1]
    assert np.array_equal(np.isnan(cover.z), mask)
    assert cover.colorscale[0][1] not in [colour for _, colour in theme.sequential()]
    assert "masked" in fig.data[0].customdata[0][1]
    assert "masked" not in fig.data[0].customdata[2][1]
    assert np.array_equal(fig.data[0].z, weights)


def test_a_mask_that_forbids_nothing_adds_nothing() -> None:
    fig = head_heatmap(softmax_rows(3, 4), QUERIES, KEYS, kind="cross", mask=np.ones((3, 4), dtype=bool))
    assert len(fig.data) == 1 and not fig.layout.shapes


def test_the_scale_runs_from_0_to_1_or_to_the_largest_weight() -> None:
    weights = softmax_rows(3, 4)
    assert colour_positions(head_heatmap(weights, QUERIES, KEYS, kind="cross")) == (0, 1)
    relative = head_heatmap(weights, QUERIES, KEYS, kind="cross", relative=True)
    assert colour_positions(relative) == (0, float(weights.max()))
    nothing = head_heatmap(np.zeros((3, 4), np.float32), QUERIES, KEYS, kind="cross", relative=True)
    assert colour_positions(nothing) == (0, 1)


def test_cells_hold_their_numbers_only_where_they_fit() -> None:
    small = head_heatmap(softmax_rows(10, 10), ["a"] * 10, ["b"] * 10, kind="cross")
    large = head_heatmap(softmax_rows(10, 11), ["a"] * 10, ["b"] * 11, kind="cross")
    assert f">{small.data[0].z[0, 0]:.2f}<" in small.data[0].text[0][0]
    assert large.data[0].texttemplate is None and large.data[0].text is None


def test_a_chosen_cell_is_framed() -> None:
    fig = head_heatmap(softmax_rows(3, 4), QUERIES, KEYS, kind="cross", chosen=(2, 1))
    (frame,) = fig.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (0.5, 1.5, 1.5, 2.5)


def test_markup_in_a_token_stays_text() -> None:
    nasty = ["<b>x</b>", "</script>", "a & b"]
    fig = head_heatmap(softmax_rows(3, 3), nasty, nasty, kind="cross")
    assert fig.layout.xaxis.ticktext == ("&lt;b&gt;x&lt;/b&gt;", "&lt;/script&gt;", "a &amp; b")
    assert "&lt;b&gt;x&lt;/b&gt;" in fig.data[0].customdata[0][0]


def test_special_tokens_are_quiet_and_the_word_start_fainter_still() -> None:
    labels = axis_labels(["</s>", "▁il", "il"], quiet="#111111", faint="#222222")
    assert labels == ['<span style="color:#111111">&lt;/s&gt;</span>', '<span style="color:#222222">▁</span>il', "il"]


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        *(("\n", "␊"), ("\x00a", "␀a"), ("\u202eabc", "⟨U+202E⟩abc"), ("\u200b", "⟨ZWSP⟩"), ("", "⟨empty⟩")),
        *(("שלום", "שלום"), ("👩\u200d🔬", "👩\u200d🔬"), ("\ue000", "⟨U+E000⟩"), ("é", "é")),
    ],
)
def test_invisible_characters_are_drawn_and_visible_ones_kept(token: str, shown: str) -> None:
    assert readable(token) == shown


@pytest.mark.parametrize("masked", [False, True])
def test_the_legend_has_room_beside_its_bar_at_the_smallest_width(masked: bool) -> None:
    mask = np.array([[True, not masked]])
    fig = head_heatmap(np.array([[1, 0]], dtype=np.float32), ["a"], ["b", "c"], kind="cross", mask=mask)
    (legend,) = fig.layout.annotations
    needed = legend.xshift + 0.55 * legend.font.size * len(legend.text)
    assert legend.xshift > fig.data[0].colorbar.len
    assert fig.layout.margin.l + needed <= fig.layout.meta["smallest_width"]


def test_numbers_in_cells_stay_apart_at_the_smallest_width() -> None:
    fig = head_heatmap(softmax_rows(10, 10), list("abcdefghij"), list("abcdefghij"), kind="cross")
    inside = fig.layout.meta["smallest_width"] - fig.layout.margin.l - fig.layout.margin.r
    assert inside / 10 >= 4 * fig.data[0].textfont.size * 0.6


@pytest.mark.parametrize("n", [1, 2, 40, 64])
def test_labels_have_room_at_the_smallest_width(n: int) -> None:
    tokens = [f"▁token{index}" for index in range(n)]
    fig = head_heatmap(softmax_rows(n, n), tokens, tokens, kind="encoder_self")
    size = fig.layout.xaxis.tickfont.size
    inside = fig.layout.meta["smallest_width"] - fig.layout.margin.l - fig.layout.margin.r
    assert size >= 8
    assert inside / n >= size
    assert fig.layout.yaxis.tickfont.size == size


def test_long_tokens_are_cut_on_the_axis_and_whole_on_hover() -> None:
    token = "Donaudampfschifffahrtsgesellschaft"
    fig = head_heatmap(softmax_rows(1, 1), [token], [token], kind="cross")
    assert fig.layout.xaxis.ticktext[0] == "Donaudampfschifff…"
    assert token in fig.data[0].customdata[0][0]


def test_a_difference_is_after_minus_before_around_zero() -> None:
    before, after = softmax_rows(3, 4, seed=1), softmax_rows(3, 4, seed=2)
    fig = difference_figure(before, after, QUERIES, KEYS, kind="cross")
    assert np.array_equal(fig.data[0].z, after - before)
    low, high = colour_positions(fig)
    assert low == -high and high == float(np.abs(after - before).max())
    assert f"before {before[0, 0]!s}" in fig.data[0].customdata[0][0]
    assert f"after {after[0, 0]!s}" in fig.data[0].customdata[0][0]


def test_no_difference_at_all_is_drawn_as_zeros() -> None:
    weights = softmax_rows(3, 4)
    fig = difference_figure(weights, weights, QUERIES, KEYS, kind="cross")
    assert not fig.data[0].z.any()
    assert colour_positions(fig) == (-1, 1)


def test_labels_that_do_not_fit_are_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"2 row and 4 column labels do not fit a matrix of shape \(3, 4\)"):
        head_heatmap(softmax_rows(3, 4), QUERIES[:2], KEYS, kind="cross")


def test_figures_load_neither_torch_nor_streamlit() -> None:
    code = (
        "import sys, transformer.figures.attention.matrix; "
        "sys.exit(bool({'torch', 'streamlit'} & {name.split('.')[0] for name in sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
