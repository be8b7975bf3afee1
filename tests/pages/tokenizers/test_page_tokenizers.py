"""The Tokenizer lab: each tokenizer's own tokens, a text and a corpus that travel in the link, files of one's own."""

import json
from functools import partial

import pytest
from page_exports import proved, verdicts
from page_models import checked, open_page, texts

from pages.tokenizers.choices import TEXT
from transformer.data.corpora import PRONOUNS, load_corpus, tokenizer_texts
from transformer.lab import load
from transformer.text.tokenizer import train_nearest
from transformer.views.tokens.vocabulary import VocabularySizes

pytestmark = pytest.mark.usefixtures("room")
MAP = {"section": "map", "model": "reverse"}


def chips(at):
    """The lines of chips on the page: label and texts."""
    found = (json.loads(element.proto.json) for element in at.get("bidi_component"))
    return {data["label"]: [token["text"] for token in data["tokens"]] for data in found if "tokens" in data}


def test_the_chips_are_the_tokens_of_four_tokenizers_of_one_corpus():
    shown = chips(open_page("tokenizers"))
    assert [label.partition(":")[0] for label in shown] == ["Characters", "Words", "BPE", "Unigram"]
    sentences = list(tokenizer_texts(load_corpus("pronouns-en-fr")))
    for kind, (label, tokens) in zip(("char", "words", "bpe", "unigram"), shown.items(), strict=True):
        n = len(train_nearest(kind, sentences, 500).encode(TEXT))
        assert label.endswith(f": {n} tokens") and len(tokens) == n


def test_text_corpus_and_size_travel_in_the_link():
    at = open_page("tokenizers", text="red heart", corpus="emoji-en-de", size="4000")
    assert chips(at)["BPE: 2 tokens"] == ["red", "heart"]
    at = checked(at.text_input(key="tokenizers-text").set_value("blue heart").run())
    assert at.query_params["text"] == "blue heart" and "BPE: 2 tokens" in chips(at)
    at = checked(at.select_slider(key="tokenizers-size").set_value(400).run())
    assert at.query_params["size"] == "400" and "BPE: 2 tokens" not in chips(at)


def test_what_cannot_be_read_back_is_said():
    said = texts(open_page("tokenizers", text="ein Igel"))
    assert "reads back as “⁇ ⁇”" in said.replace("\\", "") and "reads back exactly" in said


def test_an_empty_text_is_the_example_again():
    at = open_page("tokenizers", text="a")
    at = checked(at.text_input(key="tokenizers-text").set_value("  ").run())
    assert at.text_input(key="tokenizers-text").value == TEXT


@pytest.mark.parametrize(
    ("parameters", "said"),
    [({"corpus": "../etc"}, "The link says corpus “../etc”"), ({"size": "7"}, "The link says size “7”")],
)
def test_nonsense_in_a_link_is_answered_in_a_sentence(parameters, said):
    at = open_page("tokenizers", **parameters)
    assert said in texts(at).replace("\\", "") and len(chips(at)) == 4


def test_a_file_of_ones_own_is_learned_and_its_words_are_whole():
    rows = "".join(f"the {name} zebra {i}\tle zèbre {i}\n" for i in range(150) for name in ("small", "large"))
    at = open_page("tokenizers", text="the large zebra", size="400")
    before = chips(at)
    at = checked(at.file_uploader[0].set_value(("zebras.tsv", rows.encode(), "text/plain")).run())
    assert chips(at) != before and "BPE: 3 tokens" in chips(at)
    assert open_page("tokenizers", corpus=at.query_params["corpus"]).selectbox[0].options[-1] == "zebras.tsv"
    at = checked(at.file_uploader[0].set_value(("broken.tsv", b"no tab", "text/plain")).run())
    assert "no row with two columns" in texts(at) and "BPE: 3 tokens" in chips(at)


def test_the_columns_of_a_file_are_chosen_and_travel_in_the_link():
    """Nothing says which two of three languages are meant; the tokens come from the two that are chosen."""
    rows = [(f"the zebra {i} runs here", f"le zèbre {i} court ici", f"das Zebra {i} läuft hier") for i in range(150)]
    at = open_page("tokenizers", text="das Zebra läuft", size="400")
    file = ("three.tsv", "\n".join(map("\t".join, rows)).encode(), "text/plain")
    at = checked(at.file_uploader[0].set_value(file).run())
    assert texts(at).count("nothing says which two to learn from") == 1 and not chips(at)
    at = checked(at.selectbox(key="tokenizers-columns-source").set_value(0).run())
    at = checked(at.selectbox(key="tokenizers-columns-target").set_value(1).run())
    french = chips(at)
    at = checked(at.selectbox(key="tokenizers-columns-target").set_value(2).run())
    assert at.query_params["columns"] == "1,3" and "BPE: 3 tokens" in chips(at) != french
    assert chips(open_page("tokenizers", **at.query_params)) == chips(at)
    at = checked(at.selectbox(key="tokenizers-corpus").set_value(PRONOUNS).run())
    assert "columns" not in at.query_params and not any("columns" in (box.key or "") for box in at.selectbox)
    assert "“1,1”, which is not two columns of a file" in texts(open_page("tokenizers", columns="1,1"))


def test_the_figure_of_sizes_is_that_of_the_corpus_and_its_checks_hold(monkeypatch):
    monkeypatch.setattr("pages.tokenizers.sizes.VocabularySizes", partial(VocabularySizes, sizes=(100, 400)))
    at = open_page("tokenizers", section="sizes", corpus="emoji-en-de")
    (figure,) = (json.loads(chart.proto.spec) for chart in at.get("plotly_chart"))
    assert [trace["name"] for trace in figure["data"][::2]] == ["characters", "words", "BPE", "unigram"]
    assert "% covered at 400 entries" in texts(at)
    holding, failing = verdicts(proved("tokenizers", "vocabulary-sizes-proof", section="sizes", corpus="emoji-en-de"))
    assert (holding, failing) == (13, 0)


@pytest.mark.parametrize(
    ("section", "figure"),
    [("split", "words"), ("split", "bpe"), ("unknown", "char"), ("unknown", "unigram"), ("model", "of-model")],
)
def test_the_tokens_of_a_text_are_proved_wherever_they_are_shown(section, figure):
    given = {"section": section, "text": "The 🦔 did  not cross."}
    assert verdicts(proved("tokenizers", f"text-tokens-{figure}-proof", **given)) == (2, 0)


def test_the_map_holds_every_entry_and_the_chosen_token_is_marked():
    at = open_page("tokenizers", **MAP, token="d")
    drawn, near = (json.loads(chart.proto.spec) for chart in at.get("plotly_chart"))
    assert drawn["layout"]["annotations"][-1]["text"] == "<b>d</b>" and len(near["layout"]["yaxis"]["ticktext"]) == 12
    assert "one of 24 vocabulary entries" in texts(at)
    at = checked(at.selectbox(key="tokenizers-token").set_value("k").run())
    assert at.query_params["token"] == "k"
    at = checked(at.selectbox(key="tokenizers-model").set_value("pronouns-en-fr").run())
    assert "token" not in at.query_params and "one of 366 vocabulary entries" in texts(at)


def test_the_checks_of_the_map_hold():
    assert verdicts(proved("tokenizers", "embedding-map-proof", **MAP, token="d")) == (7, 0)
    assert verdicts(proved("tokenizers", "nearest-tokens-proof", **MAP, token="d")) == (4, 0)


def test_a_token_and_a_model_that_are_not_there_are_said():
    said = texts(open_page("tokenizers", section="map", model="nobody", token="qqq"))
    assert "There is no model" in said and "has no “qqq”" in said
    assert "\\\\" not in said  # escaped once


def test_the_slider_takes_the_merges_one_by_one_up_to_the_tokenizers_own_pieces():
    at = open_page("tokenizers", section="merges", text="the hedgehog", step="0")
    assert "Before the first merge: 13 characters." in texts(at).replace("\\", "")
    slider = at.slider[0]
    at = checked(slider.set_value(1).run())
    assert at.query_params["step"] == "1" and "Step 1 of" in texts(at)
    (marked,) = (i for i, token in enumerate(tokens(at)) if token["changed"])
    assert tokens(at)[marked]["note"] == "This merge made it."
    at = checked(at.slider[0].set_value(slider.max).run())
    assert [token["text"] for token in tokens(at)] == chips(open_page("tokenizers", text="the hedgehog"))[
        "BPE: 2 tokens"
    ]
    at = checked(at.text_input(key="tokenizers-text").set_value("a").run())
    assert "step" not in at.query_params
    page = proved("tokenizers", "bpe-merges-proof", section="merges", text="the hedgehog", model="")
    assert verdicts(page) == (5, 0)


def tokens(at):
    """The tokens of the only line of chips."""
    found = (json.loads(element.proto.json) for element in at.get("bidi_component"))
    (line,) = (data for data in found if "tokens" in data)
    return line["tokens"]


def test_an_unknown_character_is_shown_with_its_bytes_and_what_comes_back():
    said = texts(at := open_page("tokenizers", section="unknown", text="the cat")).replace("\\", "")
    assert "Every character of this text has a token" in said
    at = checked(at.button(key="sample-An emoji").click().run())
    said = texts(at).replace("\\", "")
    row = "| 🦔 | U+1F994, hedgehog | F0 9F A6 94 | <unk> | <unk> | <0xF0> <0x9F> <0xA6> <0x94> |"
    assert row in said and "The ⁇ did not cross" in said and "reads back exactly" in said
    assert at.query_params["text"].startswith("The 🦔")


def test_any_models_tokenizer_cuts_the_text_and_merges_are_shown_where_it_learned_any():
    at = open_page("tokenizers", section="model", model="reverse", text="a b ?")
    assert chips(at) == {"Words: 3 tokens": ["a", "b", "?"]} and "no merges to step through" in texts(at)
    at = checked(at.selectbox(key="tokenizers-model").set_value("emoji-en-fr").run())
    label, *_ = chips(at)
    assert label.startswith("BPE") and "Step " in texts(at) and at.get("plotly_chart")
    ids = " ".join(map(str, load("emoji-en-fr").tokenizer.encode("a b ?")))
    assert ids in texts(at)
