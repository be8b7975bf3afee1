"""Export: the files hold the picture's numbers, and the lines of Python make the same ones."""

import json
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from page_exports import figures, opened, same_figure
from page_models import CLASSIC, open_page, texts
from streamlit.testing.v1 import AppTest

from pages.shared.url.packed_link import pack
from transformer.figures import theme
from transformer.figures.steps.outputs import outputs_figure

pytestmark = pytest.mark.usefixtures("untrained_models")


def test_the_lines_of_python_make_the_output_with_its_probabilities():
    at = opened("attention", "branch-lines-export")
    made = same_figure(at)
    (shown,) = (f for f in figures(at) if f["layout"].get("paper_bgcolor", "").startswith("#"))
    (row,) = shown["data"][0]["text"]
    own = json.loads(made["figure"].to_json())
    assert own["data"][0]["text"] == [row] and own["data"][0]["customdata"] == shown["data"][0]["customdata"]
    (output,) = made["data"]
    assert len(row) == len(output.probabilities) == len(made["branch0"].target_tokens)
    assert all(f">{p:.2f}<" in text for p, text in zip(output.probabilities, row, strict=True))


def test_an_output_is_not_drawn_with_fewer_probabilities_than_tokens():
    with pytest.raises(ValueError, match="each token needs a probability"):
        outputs_figure([["a", "b"]], ["output"], np.zeros((1, 2), dtype=bool), probabilities=[np.ones(1)])


@pytest.mark.parametrize("dark", [False, True])
def test_a_changed_tokens_probability_can_be_read(dark):
    changed, probabilities = np.array([[True, False]]), [np.array([0.25, 0.001])]
    figure = outputs_figure([["a", "b"]], ["output"], changed, probabilities=probabilities, dark=dark)
    (row,) = figure.data[0].text
    ground = ((0.0, figure.data[0].colorscale[0][1]), (1.0, figure.data[0].colorscale[1][1]))
    assert row[0].count(f"color:{theme.ink_on(ground, 1.0)}") == 2 and ">a<" in row[0] and ">0.25<" in row[0]
    assert f"color:{theme.palette(dark).quiet}" in row[1] and ">&lt;0.01<" in row[1]


def test_heads_that_are_off_or_at_their_mean_are_struck_out_among_all_heads_too():
    switch = ["off:encoder.0.self:3", "mean:encoder.1.self:0,2"]
    at = opened("attention", "all-heads-export", kind="encoder_self", picture="bertviz", switch=switch)
    shown = next(f for f in figures(at) if f["layout"].get("paper_bgcolor", "").startswith("#"))
    grey = [t["colorscale"] == [list(stop) for stop in theme.greys()] for t in shown["data"]]
    assert [index for index, is_grey in enumerate(grey) if is_grey] == [3, 4, 6]
    words = [note["text"] for note in shown["layout"]["annotations"]]
    assert words.count("off") == 1 and words.count("mean") == 2 and len(shown["layout"]["shapes"]) == 3


def test_the_link_on_the_page_reopens_the_same_view():
    at = opened("attention", "head-matrix-export", kind="cross", layer="0", head="2", switch="off:decoder.0.cross:1")
    (link,) = (sublayer.value for sublayer in at.code if sublayer.value.startswith("http"))
    parameters = {name: value[0] for name, value in parse_qs(urlsplit(link).query).items()}
    assert parameters["switch"] == "off:decoder.0.cross:1" and parameters["text"] == CLASSIC
    again = open_page("attention", **parameters)
    assert "layer 0 · head 2" in texts(again)


def follow() -> None:
    import streamlit as st

    from pages.shared.url.packed_link import follow_packed_link

    follow_packed_link()
    st.text(str(sorted(st.query_params.to_dict().items())))


@pytest.mark.parametrize("view", [pack({"model": "m", "text": "a b", "layer": "0"}), "nonsense"])
def test_a_packed_link_puts_its_view_into_the_url_and_a_broken_one_says_so(view):
    at = AppTest.from_function(follow)
    at.query_params["view"] = view
    at.run()
    assert not at.exception
    if view == "nonsense":
        assert "cannot be read" in at.toast[0].value and at.text[0].value == "[]"
    else:
        assert at.text[0].value == str([("layer", "0"), ("model", "m"), ("text", "a b")])
