"""Masks in pictures: each is the array, the last is all of them together, and struck cells are the closed ones."""

import numpy as np
import pytest

from transformer.figures.attention.masks import Part, batch_figure, masks_figure
from transformer.figures.theme import palette

PADDING = Part("padding", np.array([[True, True, False]] * 3), "padding")
CAUSAL = Part("causal", np.tril(np.ones((3, 3), dtype=bool)), "later")


@pytest.mark.parametrize("dark", [False, True])
def test_the_last_matrix_is_open_where_all_are(dark: bool) -> None:
    fig = masks_figure([PADDING, CAUSAL], list("abc"), list("abc"), kind="decoder_self", dark=dark)
    drawn = [trace.z.astype(bool) for trace in fig.data]
    np.testing.assert_array_equal(drawn[2], PADDING.mask & CAUSAL.mask)
    assert [note.text for note in fig.layout.annotations] == ["padding", "causal", "∧", "combined", "="]
    assert "later" in fig.data[1].customdata[0][2] and "may attend" in fig.data[1].customdata[2][0]


def test_one_mask_alone_is_drawn_once() -> None:
    assert len(masks_figure([PADDING], list("abc"), list("abc"), kind="cross").data) == 1


def test_a_mask_that_the_model_lacks_stands_in_grey_beside_and_takes_no_part() -> None:
    lacking = Part("causal", CAUSAL.mask, "it would hide this", "causal: it has none")
    fig = masks_figure([PADDING], list("abc"), list("abc"), missing=[lacking], kind="decoder_self")
    np.testing.assert_array_equal(fig.data[0].z.astype(bool), PADDING.mask)
    np.testing.assert_array_equal(fig.data[1].z.astype(bool), CAUSAL.mask)
    assert [note.text for note in fig.layout.annotations] == ["padding", "causal: it has none"]
    assert fig.data[1].colorscale[1][1] == palette().faint != fig.data[0].colorscale[1][1]


def test_three_masks_of_40_tokens_fit_a_usual_window_and_their_labels_stay_apart() -> None:
    tokens = [f"t{i}" for i in range(41)]
    every = np.ones((41, 41), dtype=bool)
    fig = masks_figure([Part("padding", every, ""), Part("causal", np.tril(every), "")], tokens, tokens, kind="cross")
    smallest, side = fig.layout.meta["smallest_width"], fig.layout.margin.l + fig.layout.margin.r
    assert smallest <= 960
    cell = (smallest - side) * (fig.layout.xaxis.domain[1] - fig.layout.xaxis.domain[0]) / 41
    assert cell * (fig.layout.xaxis.tickvals[1] - fig.layout.xaxis.tickvals[0]) >= 9


def test_three_masks_of_a_short_sentence_fit_a_phone_with_their_labels_apart() -> None:
    tokens = ["<s>", *"abcde", "<pad>", "<pad>"]
    every = np.ones((8, 8), dtype=bool)
    fig = masks_figure([Part("padding", every, ""), Part("causal", np.tril(every), "")], tokens, tokens, kind="cross")
    meta, margin = fig.layout.meta, fig.layout.margin
    assert meta["smallest_width"] <= 342  # what a phone of 390 pixels leaves
    cell = (meta["smallest_width"] - margin.l - margin.r) / meta["squares"]["columns"]
    assert cell >= 8.9 and meta["small_labels_below"] > 342
    lower = margin.t + margin.b + cell * meta["squares"]["rows"]
    assert lower < fig.layout.height and fig.layout.annotations[2].yref == "y"


def test_masks_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2 row and 3 column labels do not fit a matrix of shape \(3, 3\)"):
        masks_figure([PADDING], list("ab"), list("abc"), kind="cross")


def test_a_batch_shows_which_places_are_real() -> None:
    real = np.array([[True, True], [True, False]])
    fig = batch_figure([["a", "<b>"], ["c", "<pad>"]], real)
    np.testing.assert_array_equal(fig.data[0].z.astype(bool), real)
    assert fig.data[0].text[0][1] == "&lt;b&gt;"
