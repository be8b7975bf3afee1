"""The strips of the Walkthrough: exact numbers on hover, masked cells struck, nothing taken for markup."""

import numpy as np
import pytest

from transformer.figures import theme
from transformer.figures.walkthrough import Strip, strips_figure


def heatmaps(fig):
    return [trace for trace in fig.data if trace.type == "heatmap"]


def test_each_strip_has_its_own_scale_around_0_and_exact_numbers():
    values = np.array([0.1, -2.5, 0.30000001], dtype=np.float32)
    fig = strips_figure([Strip("x", values), Strip("weights", np.array([0.25, 0.75], np.float32), scale="weights")])
    around, weights = heatmaps(fig)
    assert (around.zmin, around.zmax) == (-2.5, 2.5) and (weights.zmin, weights.zmax) == (0.0, 1.0)
    assert [text.split("<br>")[1] for text in around.customdata[0]] == [str(v) for v in values]
    assert "x · ±2.5" in [note.text for note in fig.layout.annotations]


def test_masked_cells_are_struck_and_do_not_stretch_the_scale():
    values = np.array([1.0, 50.0], dtype=np.float32)
    fig = strips_figure([Strip("masked", values, ["a", "b"], allowed=np.array([True, False]))])
    assert heatmaps(fig)[0].zmax == 1.0
    assert "forbidden by the mask" in heatmaps(fig)[0].customdata[0][1]
    assert list(heatmaps(fig)[1].text[0]) == ["", "−∞"]
    many = Strip("scores", np.zeros((2, 2), np.float32), ["a", "b"], ["c", "d"], np.array([[True, False]] * 2))
    assert any(shape.type == "path" for shape in strips_figure([many]).layout.shapes)


def test_a_matrix_names_its_rows_and_frames_the_followed_one():
    fig = strips_figure([Strip("q", np.ones((2, 3), np.float32), rows=["▁it", "<b>"], chosen=1)], kind="cross")
    (frame,) = (shape for shape in fig.layout.shapes if shape.type == "rect")
    assert (frame.y0, frame.y1, frame.line.color) == (0.5, 1.5, theme.CROSS)
    assert "<b>&lt;b&gt;</b>, row 1, dimension 0" in heatmaps(fig)[0].customdata[1][0]
    assert "&lt;b&gt;" in fig.layout.yaxis.ticktext[1]


def test_ids_are_written_as_whole_numbers():
    fig = strips_figure([Strip("ids", np.array([5, 1234]), ["a", "b"], scale="plain")])
    assert ">1234<" in heatmaps(fig)[0].text[0][1]


def test_zeros_are_said_to_be_zero_and_large_matrices_are_not_described_cell_by_cell():
    fig = strips_figure([Strip("x", np.zeros(4, np.float32)), Strip("big", np.ones((80, 100), np.float32))])
    assert "x · all 0" in [note.text for note in fig.layout.annotations]
    assert heatmaps(fig)[1].customdata is None and "%{z:.9g}" in heatmaps(fig)[1].hovertemplate


def test_what_does_not_fit_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match="3 column labels do not fit 2 columns of x"):
        strips_figure([Strip("x", np.zeros(2, np.float32), ["a", "b", "c"])])
    with pytest.raises(ValueError, match="1 row labels do not fit 2 rows of x"):
        strips_figure([Strip("x", np.zeros((2, 2), np.float32), rows=["a"])])
    with pytest.raises(ValueError, match="there is no strip to draw"):
        strips_figure([])
