"""The answer to a switch: both outputs aligned, what moved on equal words, and the head that moved most."""

import json

import numpy as np
import pytest
from page_models import CLASSIC, PRONOUNS, checked, component, open_page, texts
from streamlit.testing.v1 import AppTest

from pages.shared.components.tokens import aligned_tokens
from transformer.interventions import parse_intervention
from transformer.lab import load

SWITCHES = ["off:decoder.0.self:0,1,2,3", "mean:decoder.1.cross:1"]


pytestmark = pytest.mark.usefixtures("untrained_models")


def attention(**parameters):
    return open_page("attention", **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def drawn(at, key):
    """The plotly figure with this key."""
    (chart,) = (chart for chart in at.get("plotly_chart") if f"-{key}" in chart.proto.id or chart.proto.id == key)
    return json.loads(chart.proto.spec)["data"]


def aligned(at):
    """The data of the aligned outputs; None where they are not drawn."""
    return component(at, "labels")


def test_without_switches_nothing_is_compared():
    at = attention()
    assert aligned(at) is None and not at.get("plotly_chart")


def test_both_outputs_stand_side_by_side_token_for_token():
    columns = aligned(attention(switch=SWITCHES))["columns"]
    comparison = load(PRONOUNS).compare(CLASSIC, list(map(parse_intervention, SWITCHES)))
    assert len(columns) == len(comparison.alignment)
    for (above, below), (i, j) in zip(columns, comparison.alignment, strict=True):
        assert (above is None, below is None) == (i is None, j is None)
        if above and i is not None:
            assert above["probability"] == pytest.approx(float(comparison.before.probabilities[i]))
            assert above["changed"] == comparison.marks[0][i]
        if below and j is not None:
            assert below["changed"] == comparison.marks[1][j]


def test_the_figures_show_what_was_measured_and_the_head_that_moved_most_is_a_click_away():
    at = attention(switch=SWITCHES, kind="encoder_self", layer="0", head="1")
    comparison = load(PRONOUNS).compare(CLASSIC, list(map(parse_intervention, SWITCHES)))
    bars = next(trace for trace in drawn(at, "probabilities") if trace["type"] == "bar")
    assert len(bars["x"]) == len(comparison.kl_divergence)
    assert "No weight of this head moved: the largest change is exactly 0." in texts(at)  # the encoder comes before
    moved, kind, layer, head = load(PRONOUNS).attention_shift(comparison).largest()[0]
    assert moved > 0 and f"layer {layer}, head {head}" in at.button(key="most-moved").label
    at = checked(at.button(key="most-moved").click().run())
    assert at.query_params.get("kind", "cross") == kind and at.query_params["head"] == str(head)
    assert any(trace["type"] == "heatmap" for trace in drawn(at, "difference"))
    assert "most-moved" not in [button.key for button in at.button]


def test_a_switch_that_changed_nothing_says_so_with_the_number():
    said = texts(attention(switch="mask:padding"))
    assert "**The output did not change.**" in said and "No probability changed" in said
    assert "No weight of this head moved: the largest change is exactly 0." in said
    assert "No other head's weights changed either." in said


def test_rounding_is_neither_drawn_nor_offered_as_the_head_that_moved_most():
    own = f"copy:decoder.1.ffn.output:all:{CLASSIC}"  # puts back what is there, in passes over the whole prefix
    comparison = load(PRONOUNS).compare(CLASSIC, [parse_intervention(own)])
    moved = load(PRONOUNS).attention_shift(comparison).largest()[0][0]
    assert 0 < moved < 1e-6 and 0 < comparison.kl_divergence.max() < 1e-6
    at = attention(switch=own)
    assert "No weight of this head moved" in texts(
        at
    ) and "No other head's weights changed either: at most by" in texts(at)
    assert "most-moved" not in [button.key for button in at.button]
    (chart,) = at.get("plotly_chart")
    assert json.loads(chart.proto.spec)["layout"]["yaxis2"]["range"] == [0, 1]


def test_aligned_lines_need_as_many_probabilities_as_tokens():
    with pytest.raises(ValueError, match="2 tokens need as many probabilities, not 1"):
        aligned_tokens((["a", "b"], [1.0]), (["a"], [1.0]), ((0, 0), (1, None)), labels=("x", "y"), key="z")


def test_markup_in_aligned_tokens_travels_as_text():
    def draw() -> None:
        from pages.shared.components.tokens import aligned_tokens

        line = (["</script>", "\u202e"], [0.5, 1.0])
        aligned_tokens(line, (["a"], [0.25]), ((0, 0), (1, None)), labels=("before", "after"), key="aligned")

    app = AppTest.from_function(draw, default_timeout=30).run()
    assert not app.exception
    data = aligned(app)
    assert [[t and t["text"] for t in column] for column in data["columns"]] == [["</script>", "a"], ["⟨U+202E⟩", None]]
    assert np.isclose(data["columns"][0][1]["probability"], 0.25)
