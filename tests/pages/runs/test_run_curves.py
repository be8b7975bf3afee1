"""The curves of one run: the quantities that a visitor chooses."""

import json

import pytest
from films import field, in_url
from page_models import texts
from streamlit.testing.v1 import AppTest

from transformer.runs import run_folder
from transformer.views.training.runs import QUANTITIES


def draw_chosen_curves(run_id: str) -> None:
    import streamlit as st

    from pages.shared.url.session import enter_page
    from pages.training.run_view import SHOWN, render_curves
    from transformer.analysis.training.progress import progress_of
    from transformer.runs import run_folder

    if not st.session_state.get("panel-alone"):
        enter_page("Runs")
        SHOWN.follow_url()
    run = run_folder.get_run(run_id)
    render_curves(run, progress_of(run.folder))


def opened(run_id: str, **parameters: str | list[str]) -> AppTest:
    at = AppTest.from_function(draw_chosen_curves, args=(run_id,), default_timeout=60)
    at.query_params.update(parameters)
    return at.run()


def panels(at: AppTest) -> list[dict]:
    assert not at.exception
    return json.loads(at.get("bidi_component")[0].proto.json)["panels"]


COLUMNS = {
    "perplexity": "perplexity",
    "gradient norm": "gradient_norm",
    "learning rate": "learning_rate",
    "tokens/s": "tokens_per_s",
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_quantity_can_be_drawn(film_run, name):
    column = COLUMNS[name]
    at = opened(film_run)
    assert [panel["series"][-1]["name"] for panel in panels(at)] == [
        "validation loss, not smoothed", "validation exact match",
    ]  # fmt: skip
    at = field(at, "curves-shown").set_value([name]).run()
    (only,) = panels(at)
    split = "validation" if name == "perplexity" else "train"
    rows = [row for row in run_folder.metrics(film_run) if row["split"] == split and row[column] > 0]
    assert only["series"][0]["y"][-1] == pytest.approx(rows[-1][column], rel=1e-3)
    assert in_url(at, "curve") == name


def test_scores_that_a_corpus_lacks_are_not_offered(film_run):
    at = opened(film_run)
    assert "BLEU" in QUANTITIES and "BLEU" not in field(at, "curves-shown").options
    at = field(at, "curves-shown").set_value([]).run()
    assert not at.get("bidi_component") and "Choose what to see" in texts(at)


def test_a_link_names_the_curves_and_what_is_none_of_them_is_said(film_run):
    at = opened(film_run, curve=["perplexity", "zzz"])
    assert [panel["title"].split(",")[0] for panel in panels(at)] == ["perplexity"]
    assert "The link says curve “zzz”" in texts(at) and in_url(at, "curve") == "perplexity"
    at = field(at, "curves-shown").set_value(["learning rate"]).run()
    assert "zzz" not in texts(at), "the sentence is gone with the visitor's next choice"


def test_a_link_of_nonsense_alone_draws_what_is_drawn_first(film_run):
    at = opened(film_run, curve="zzz")
    assert field(at, "curves-shown").value == ["loss", "exact match"] and "“zzz”" in texts(at)
    assert "curve" not in at.query_params


def test_a_link_counts_after_a_choice_for_which_the_panel_alone_was_run(film_run):
    at = opened(film_run, curve="perplexity")
    at.session_state["panel-alone"] = True
    at = field(at, "curves-shown").set_value([]).run()
    assert in_url(at, "curve") == "none" and "Choose what to see" in texts(at)
    at.session_state["panel-alone"] = False
    at.query_params["curve"] = "tokens/s"
    assert field(at.run(), "curves-shown").value == ["tokens/s"]
