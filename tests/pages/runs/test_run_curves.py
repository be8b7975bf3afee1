"""The curves of one run: the quantities that a visitor chooses."""

import json

import pytest
from films import field, in_url
from page_models import texts
from streamlit.testing.v1 import AppTest

from transformer.runs import run_folder
from transformer.views.training.runs import QUANTITIES


def draw_chosen_curves(run_id: str) -> None:
    from pages.training.run_view import render_curves
    from transformer.analysis.training.progress import progress_of
    from transformer.runs import run_folder

    run = run_folder.get_run(run_id)
    render_curves(run, progress_of(run.folder))


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
    at = AppTest.from_function(draw_chosen_curves, args=(film_run,), default_timeout=60).run()
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
    at = AppTest.from_function(draw_chosen_curves, args=(film_run,), default_timeout=60).run()
    assert "BLEU" in QUANTITIES and "BLEU" not in field(at, "curves-shown").options
    at = field(at, "curves-shown").set_value([]).run()
    assert not at.get("bidi_component") and "Choose what to see" in texts(at)
