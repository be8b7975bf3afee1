"""Before attention: the bottleneck of a recurrent model, and what the page says of other models."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from page_exports import proved, verdicts
from page_models import PRONOUNS, REVERSE, checked, open_page, save_recurrent, save_untrained, texts

VECTOR, ATTENTION = "untrained-rnn", "untrained-rnn-attention"


@pytest.fixture(scope="module")
def family_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with a model of each kind."""
    folder = tmp_path_factory.mktemp("families")
    save_untrained(folder)
    save_recurrent(folder / VECTOR)
    save_recurrent(folder / ATTENTION, "additive")
    return folder


@pytest.fixture(autouse=True)
def families(family_runs: Path, monkeypatch: pytest.MonkeyPatch, no_shipped: None) -> Iterator[None]:
    """The same, for pages to open, and no shipped models."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(family_runs))
    yield


def here(at, label):
    """The page after following the one link to it whose label begins so."""
    links = (link.proto for link in at.get("page_link"))
    (link,) = (link for link in links if link.label.replace("\\", "").startswith(label))
    assert link.page == "before-attention"
    return open_page("before", **{name: values[0] for name, values in parse_qs(link.query_string).items()})


def charts(at):
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def test_the_page_opens_on_a_recurrent_model_and_shows_what_its_vector_kept():
    at = open_page("before")
    assert at.radio(key="choose-model").value == VECTOR
    assert "into one vector of 16 numbers" in texts(at) and "nothing else" in texts(at)
    assert charts(at)[0]["data"][0]["type"] == "heatmap"
    at = checked(at.segmented_control(key="before-shows").set_value("lengths").run())
    assert at.query_params["shows"] == "lengths"
    assert [trace["name"] for trace in charts(at)[0]["data"] if trace.get("name")] == [
        "read back whole by linear probes",
        "written by the model without a mistake",
    ]


def test_the_badge_opens_checks_that_hold():
    holding, failing = verdicts(proved("before", "bottleneck-proof", model=VECTOR, text="a b"))
    assert holding > 5 and failing == 0


def test_with_attention_the_page_says_that_the_decoder_sees_more():
    at = open_page("before", model=ATTENTION)
    assert "Bahdanau et al. 2015" in texts(at) and "nothing else" not in texts(at)


def test_of_a_transformer_the_page_says_that_it_has_no_vector_and_offers_models_that_have():
    at = open_page("before", model=REVERSE, text="a b c")
    assert "It has no such vector" in texts(at) and not charts(at)
    at = here(at, f"Open {VECTOR} (RNN, one vector, learned reverse)")
    assert at.radio(key="choose-model").value == VECTOR
    assert at.text_input(key="choose-text").value == "a b c"


def test_without_any_recurrent_model_the_page_says_how_to_train_one(untrained_models):
    at = open_page("before", model=REVERSE)
    assert "--model.family rnn" in at.code[0].value


@pytest.mark.parametrize("model", [VECTOR, ATTENTION, REVERSE])
def test_home_leads_here_with_the_model_and_the_sentence(model):
    at = here(open_page(model=model, text="a b c"), "What did people do before attention?")
    assert at.radio(key="choose-model").value == model
    assert at.text_input(key="choose-text").value == "a b c"


@pytest.mark.parametrize("over", ["sentence", "pairs"])
def test_the_gradients_of_a_model_of_each_kind_are_drawn_by_distance(over, monkeypatch):
    monkeypatch.setattr("pages.before.gradient.PAIRS", 5)
    at = open_page("before", model=VECTOR, text="a b c", section="gradient", over=over)
    lines, cells = charts(at)
    assert [trace["name"] for trace in lines["data"]] == ["RNN, one vector", "RNN with attention", "Transformer"]
    assert lines["layout"]["yaxis"]["type"] == "log" and cells["data"][0]["type"] == "heatmap"
    assert "steps, the length of the gradient is multiplied by" in texts(at)
    before = lines["data"][0]["y"]
    at = checked(at.segmented_control(key="before-weights").set_value("trained").run())
    assert at.query_params["weights"] == "trained" and charts(at)[0]["data"][0]["y"] != before


def test_the_map_is_that_of_the_chosen_model():
    at = open_page("before", model=ATTENTION, text="a b c", section="gradient")
    assert f"Where the gradient of {ATTENTION} goes" in texts(at).replace("\\", "")


def test_without_a_recurrent_model_of_this_corpus_others_are_offered():
    at = open_page("before", model=PRONOUNS, section="gradient")
    assert "No recurrent model here learned *pronouns" in texts(at).replace("\\", "")
    assert here(at, f"Open {VECTOR} (").radio(key="choose-model").value == VECTOR


def test_a_link_with_nonsense_is_said():
    assert "section" in texts(open_page("before", model=VECTOR, section="nonsense"))
