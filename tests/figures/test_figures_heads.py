"""Figures of all heads: what stands where, and that labels cannot become markup."""

import numpy as np
import pytest

from transformer.figures.heads.bars import Bar, dependence_bars, profile_bars, ranking, weight_against_effect
from transformer.figures.heads.tables import Sublayer, effect_map, head_map, similarity_map
from transformer.figures.theme import kind_colour

SUBLAYERS = (Sublayer("encoder_self", 0), Sublayer("cross", 0))


def test_the_map_has_a_cell_and_a_click_target_for_each_head_and_leaves_missing_ones_empty():
    values = np.array([[0.1, np.nan, 0.3], [0.9, 0.004, 1.0]])
    hover = [["a", "b", "c"], ["d", "e", "f"]]
    figure = head_map(values, SUBLAYERS, hover, quantity="mean weight", limits=(0.0, 1.0), chosen=(1, 2))
    cells, targets = figure.data
    np.testing.assert_array_equal(cells.z, values)
    assert cells.text[0][1] == "" and ">0<" in cells.text[1][1] and ">0.10<" in cells.text[0][0]
    assert list(zip(targets.x, targets.y, strict=True)) == [(x, y) for y in (0, 1) for x in (0, 1, 2)]
    assert "encoder 0 · head 1" in targets.customdata[1] and "decoder 0 cross · head 2" in targets.customdata[5]
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.y0) == (1.5, 0.5) and frame.line.color == kind_colour("cross")
    assert kind_colour("encoder_self") in figure.layout.yaxis.ticktext[0]
    with pytest.raises(ValueError, match="do not fit"):
        head_map(values, SUBLAYERS[:1], hover, quantity="", limits=(0.0, 1.0))


def test_likeness_frames_each_group_of_several_heads():
    distances = np.array([[0, 0.2, 0.9], [0.2, 0, 0.8], [0.9, 0.8, 0]])
    figure = similarity_map(distances, ["0·0", "1·1", "0·1"], kind="cross", sizes=[2, 1])
    assert len(figure.layout.shapes) == 1 and figure.layout.shapes[0].x1 == 1.5
    assert "distance 0.200" in figure.data[0].customdata[0][1]


@pytest.mark.parametrize("n_columns", [3, 16])
def test_a_matrix_says_how_low_it_is_in_a_narrow_column(n_columns):
    """Give what is left of the height to the cells: twice as many rows take twice as much."""

    def below(n_rows):
        figure = effect_map(np.zeros((n_rows, n_columns)), ["row"] * n_rows, ["column"] * n_columns)
        squares, margin = figure.layout.meta["squares"], figure.layout.margin
        assert (squares["rows"], squares["columns"]) == (n_rows, n_columns)
        assert (squares["beside"], squares["above"]) == (margin.l + margin.r, margin.t + margin.b)
        return figure.layout.height - squares["above"]

    assert below(16) == pytest.approx(2 * below(8), abs=2) and below(8) > 100


def test_effects_are_drawn_around_zero_and_tokens_are_escaped():
    effect = np.array([[2.0, -0.5], [0.01, 0.0]])
    figure = effect_map(effect, ["</script>", "b"], ["<b>x", "y"])
    cells = figure.data[0]
    assert (cells.zmin, cells.zmax) == (-2.0, 2.0)
    assert cells.text[1] == ("", "") or list(cells.text[1]) == ["", ""]
    assert "loses 2 nats" in cells.customdata[0][0] and "gains 0.5 nats" in cells.customdata[0][1]
    written = figure.to_json()
    assert "</script>" not in written and "<b>x" not in written.replace("\\u003c", "<")
    with pytest.raises(ValueError, match="do not fit"):
        effect_map(effect, ["a", "b"], ["x"])


def test_the_ranking_keeps_its_order_and_draws_intervals_where_there_are_some():
    bars = [Bar("a", "cross", 2.0, 1.5, 2.5), Bar("b", "encoder_self", 1.0, 0.5, 1.5), Bar("c", "cross", -1.0, -2, 0)]
    figure = ranking(bars, quantity="change of loss")
    by_colour = {trace.marker.color: trace for trace in figure.data}
    cross = by_colour[kind_colour("cross")]
    assert list(cross.y) == [0, 2] and list(cross.x) == [2.0, -1.0]
    assert list(cross.error_x.array) == [0.5, 1.0] and list(cross.error_x.arrayminus) == [0.5, 1.0]
    assert "95 %: +1.5 to +2.5" in cross.customdata[0][1]
    plain = ranking([Bar("a", "cross", 2.0)], quantity="nats")
    assert plain.data[0].error_x.array is None


def test_every_cell_of_a_head_is_a_dot():
    weights, effect = np.array([[0.25, 0.75]]), np.array([[1.0, -1.0]])
    figure = weight_against_effect(weights, effect, ["<i>t"], ["a", "b"], kind="cross")
    assert list(figure.data[0].x) == [0.25, 0.75] and list(figure.data[0].y) == [1.0, -1.0]
    assert "&lt;i&gt;t" in figure.data[0].customdata[0]


def test_a_profile_has_a_bar_and_an_even_heads_tick_for_each_place():
    figure = profile_bars([0.7, 0.1], [0.2, 0.25], ["itself", "the end mark"], kind="decoder_self")
    bars, ticks = figure.data
    assert list(bars.x) == [0.7, 0.1] and list(ticks.x) == [0.2, 0.25]
    assert bars.marker.color == kind_colour("decoder_self")
    assert [(note.x, note.text) for note in figure.layout.annotations] == [(0.7, "0.70"), (0.25, "0.10")]
    assert list(figure.layout.yaxis.ticktext) == ["itself", "the end mark"]
    with pytest.raises(ValueError, match="must be as many"):
        profile_bars([0.7], [0.2, 0.25], ["itself"], kind="cross")


def test_each_source_token_has_its_weights_and_what_is_left_without_it():
    weights, left = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.2, 0.8])
    figure = dependence_bars(weights, left, ["<b>a", "b"], written="<i>t", whole=0.81, kind="cross")
    assert [list(bars.x) for bars in figure.data] == [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]
    assert [bars.xaxis for bars in figure.data] == ["x", "x2", "x3"]
    (line,) = figure.layout.shapes
    assert (line.xref, line.x0, line.x1) == ("x3", 0.81, 0.81)
    assert figure.layout.xaxis3.title.text == "probability of &lt;i&gt;t without it"
    assert "&lt;b&gt;a" in figure.data[2].customdata[0] and "0.2" in figure.data[2].customdata[0]
    with pytest.raises(ValueError, match="1 tokens do not fit"):
        dependence_bars(weights, left, ["a"], written="t", whole=0.81, kind="cross")
