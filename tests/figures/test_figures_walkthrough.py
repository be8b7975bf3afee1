"""The strips and the map of Walkthrough: exact numbers on hover, masked cells struck, nothing taken for markup."""

import numpy as np
import pytest
from random_models import random_model

from transformer.analysis.trace.attention_steps import Penalty
from transformer.analysis.trace.diagram import draw_map, map_arrays
from transformer.analysis.trace.steps import find_step
from transformer.analysis.trace.trace import record_trace
from transformer.figures import theme
from transformer.figures.trace.arrays import Strip, strips_figure
from transformer.figures.trace.diagram import map_figure
from transformer.interventions import parse_intervention


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


@pytest.fixture(scope="module")
def passed():
    """A tiny model and one recorded pass through it, three tokens in and two out."""
    model = random_model(n_heads=2, d_model=8)
    log_probs = np.zeros((2, model.config.vocab_size), np.float32)
    return model, record_trace(model, [5, 6, 2], [7, 2], log_probs=log_probs, source_again=[5, 6, 2])


@pytest.mark.parametrize("dark", [False, True])
def test_the_map_says_what_shape_comes_out_of_each_step(passed, dark):
    model, trace = passed
    chosen = find_step(model, "decoder.cross.weights")
    drawing = draw_map(model, chosen)
    arrays = map_arrays(model, trace, drawing)
    shapes = {step: {name: shown.values.shape for name, shown in own.items()} for step, own in arrays.items()}
    assert set(shapes["decoder.cross.weights"].values()) == {(2, 2, 3)}  # head, query, key
    assert set(shapes["encoder.self.qkv"].values()) == {(3, 8)}  # folded: what comes out of the block
    assert set(shapes["decoder.probabilities"].values()) == {(2, model.config.vocab_size)}
    fig = map_figure(drawing, shapes, dark=dark)
    words = dict(zip([box.step for box in drawing.boxes], fig.data[0].text, strict=True))
    assert words["decoder.cross.weights"].startswith("<b>Softmax</b>") and "2 × 2 × 3" in words["decoder.cross.weights"]
    assert words["encoder.self.qkv"].startswith("Multi-head attention<br>") and "3 × 8" in words["encoder.self.qkv"]
    inside = fig.layout.xaxis.range[1], fig.layout.yaxis.range[1]
    assert all(0 < x < inside[0] and 0 < y < inside[1] for x, y in zip(fig.data[0].x, fig.data[0].y, strict=True))
    fills = [shape.fillcolor for shape in fig.layout.shapes if shape.type == "path"]
    assert fills.count(theme.palette(dark).accent) == 1
    n_outlined = sum(box.shape != "text" for box in drawing.boxes)
    n_heads = sum(line.arrow for line in drawing.lines)
    n_sheets = sum(frame.sheets + 1 for frame in drawing.frames)
    assert len(fig.layout.shapes) == n_outlined + len(drawing.lines) + n_heads + n_sheets


def test_the_map_marks_what_a_switch_acts_on_and_draws_what_a_model_has_not_as_a_gap(passed):
    off = parse_intervention("off:decoder.0.cross:1")
    drawing = draw_map(passed[0], find_step(passed[0], "decoder.cross.context"), 0, [off])
    fig = map_figure(drawing, {})
    assert [box.step for box in drawing.boxes if box.switched] == ["decoder.cross.context"]
    assert sum(shape.type == "circle" for shape in fig.layout.shapes) == 1
    assert any(off.label() in note for note in fig.data[0].customdata)
    bare = random_model(positions="none", scale_scores=False)
    fig = map_figure(draw_map(bare, find_step(bare, "encoder.self.qkv")), {})
    assert "no positions" in fig.data[0].text and "no ÷ √dₖ" in fig.data[0].text
    assert any(shape.line.dash for shape in fig.layout.shapes)


def test_a_map_refuses_a_step_that_is_not_on_it(passed):
    drawing = draw_map(passed[0], find_step(passed[0], "encoder.ids"))
    with pytest.raises(ValueError, match=r"the map has no step decoder\.cross\.scaled"):
        map_figure(drawing, {"decoder.cross.scaled": {"scores": (2, 2, 3)}})
    with pytest.raises(ValueError, match=r"this model has no step encoder\.self\.penalty"):
        draw_map(passed[0], Penalty(passed[0], "encoder", "self"))


def test_forty_tokens_fit_beside_the_map_with_labels_that_stay_apart() -> None:
    tokens = [f"word{i}" for i in range(42)]
    fig = strips_figure([Strip("weights", np.zeros((42, 42), np.float32), tokens, tokens, scale="weights")])
    assert fig.layout.meta["smallest_width"] <= 520
    rows = fig.layout.yaxis.tickvals
    height = (fig.layout.yaxis.domain[1] - fig.layout.yaxis.domain[0]) * fig.layout.height / 42
    assert (rows[1] - rows[0]) * height >= fig.layout.yaxis.tickfont.size


def test_ids_are_written_however_many_there_are() -> None:
    ids = np.arange(60) + 1000
    fig = strips_figure([Strip("ids", ids, [str(i) for i in ids], scale="plain")])
    assert "1059" in fig.data[0].text[0][-1] and fig.layout.meta["smallest_width"] >= 60 * 4 * 6
