"""Words in figures in another language: titles, names, notes, hover boxes are said in it; tokens and numbers stay."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from pages.shared.texts.figure_words import FIGURE_WORDS, in_language
from pages.shared.texts.phrases import Phrases

GERMAN = """
[library.figures]
weight = "Gewicht"
before = "vorher"
after = "nachher"
[library.figures.attention]
cross_query = "Frage: entstehendes Token"
layer_head = "Kopf {head} von Schicht {layer}"
[library.figures.cell]
query = "Frage {token}, Zeile {row}"
weight = "Gewicht {weight}"
[library.figures.lengths]
of_length = "{length} Tokens lang"
"""


@pytest.fixture(autouse=True)
def server_in_german(server_in, tmp_path):
    path = tmp_path / "de.toml"
    path.write_text(GERMAN, encoding="utf-8")
    server_in(path)


def said(figure: go.Figure) -> dict:
    return json.loads(in_language(figure).to_json())


def test_a_sentence_keeps_its_numbers_and_may_put_them_elsewhere():
    assert FIGURE_WORDS("layer 2, head 13") == "Kopf 13 von Schicht 2"
    assert FIGURE_WORDS("layer {2}, head %{z:.3g}") == "Kopf %{z:.3g} von Schicht {2}"


def test_what_the_catalogue_or_the_language_lacks_stays_in_english():
    assert FIGURE_WORDS("no such words") == "no such words"
    assert FIGURE_WORDS("key: source token it looks at") == "key: source token it looks at"
    assert Phrases("library.figures").find("no such words") is None


def test_titles_names_notes_and_colour_bars_are_said_in_the_language():
    figure = go.Figure(go.Heatmap(z=[[1.0]], colorbar={"title": {"text": "weight"}}))
    figure.add_scatter(x=[0], y=[1], name="before")
    figure.update_layout(yaxis2={"title": {"text": "query: token being written"}}, legend={"title": {"text": "after"}})
    figure.add_annotation(text="layer 0, head 1", x=0, y=0)
    shown = said(figure)
    assert shown["data"][0]["colorbar"]["title"]["text"] == "Gewicht"
    assert shown["data"][1]["name"] == "vorher"
    assert shown["layout"]["yaxis2"]["title"]["text"] == "Frage: entstehendes Token"
    assert shown["layout"]["legend"]["title"]["text"] == "nachher"
    assert shown["layout"]["annotations"][0]["text"] == "Kopf 1 von Schicht 0"


def test_each_line_of_a_hover_box_is_said_in_the_language():
    cells = np.array([["query <b>weight</b>, row 3<br>weight 0.5"]], dtype=object)
    template = "%{x} tokens<br>%{customdata}<extra></extra>"
    shown = said(go.Figure(go.Heatmap(z=[[1.0]], customdata=cells, hovertemplate=template)))["data"][0]
    assert shown["customdata"] == [["Frage <b>weight</b>, Zeile 3<br>Gewicht 0.5"]]
    assert shown["hovertemplate"] == "%{x} Tokens lang<br>%{customdata}<extra></extra>"


@pytest.mark.parametrize(
    ("labels", "shown"), [(["before", "after"], ["vorher", "nachher"]), (["before", "</s>"], ["before", "</s>"])]
)
def test_labels_of_an_axis_are_words_if_all_are_and_else_tokens(labels, shown):
    figure = go.Figure(layout={"xaxis": {"tickvals": [0, 1], "ticktext": labels}})
    assert said(figure)["layout"]["xaxis"]["ticktext"] == shown


def test_an_axis_without_labels_gets_none():
    figure = go.Figure(layout={"xaxis": {"title": {"text": "weight"}}})
    assert said(figure)["layout"]["xaxis"] == {"title": {"text": "Gewicht"}}


def test_numbers_and_the_tokens_in_cells_stay():
    numbers = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    cells = go.Heatmap(z=numbers, text=[["before"] * 4] * 3, customdata=numbers)
    shown = in_language(go.Figure(cells)).data[0]
    assert np.array_equal(shown.z, numbers) and np.array_equal(shown.customdata, numbers)
    assert shown.text[0][0] == "before"


def test_an_english_server_draws_the_figure_itself(server_in):
    server_in("en")
    figure = go.Figure()
    assert in_language(figure) is figure
