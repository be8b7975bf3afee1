"""Train, a run: how it stands, what can be done to it, and the way into its newest weights."""

import json

import pytest
from page_models import checked, follow, open_page, texts
from page_runs import PINNED, at_work, made_run, put_status, trained_run
from page_train import bars

from pages.shared.wording import plain
from transformer.runs.status import REQUEST_FILE
from transformer.runs.status import run_folder as folder_of

pytestmark = pytest.mark.usefixtures("room", "measurements")


def test_a_finished_run_shows_its_curves_its_sentences_and_a_head():
    run_id = trained_run()
    at = open_page("train", run=run_id)
    drawn = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    lines = [line for data in drawn for panel in data.get("panels", ()) for line in panel["series"]]
    assert [line["name"] for line in lines] == [
        "training loss, label-smoothed",
        "validation loss, not smoothed",
        "validation exact match",
    ]
    data = bars(at)
    assert data["state"] == "Finished" and data["share"] == 1 and "all its steps are done" in data["rest"]
    assert [name for name, *_ in data["readings"]][:5] == [
        *("training loss", "validation loss", "exact match", "learning rate", "speed"),
    ]
    (help,) = (link.proto.help for link in at.get("page_link") if link.proto.label == "Look inside")
    assert help.endswith("of step 20")
    assert next(data for data in drawn if "frames" in data)["frames"][-1]["step"] == 20


def test_look_inside_opens_the_attention_page_on_this_run_and_sentence():
    run_id = trained_run()
    at = follow(open_page("train", run=run_id), "Look inside", "attention")
    assert at.radio(key="choose-model").value == run_id
    assert at.text_input(key="choose-text").value == PINNED[0]


def test_a_failed_run_says_its_sentence_and_offers_to_resume(started):
    run_id = made_run()
    put_status(run_id, state="failed", step=3, error="the loss is no longer a finite number at step 3: lower the rate")
    at = open_page("train", run=run_id)
    assert plain("The loss is no longer a finite number at step 3") in texts(at)
    assert bars(at)["tone"] == "failed"
    checked(at.button(key="run-primary").click().run())
    assert started == [run_id]


def test_a_run_at_work_is_drawn_live_and_takes_requests():
    run_id = trained_run()
    at_work(run_id)
    at = open_page("train", run=run_id)
    assert bars(at)["state"] == "Training"
    at = checked(at.button(key="run-primary").click().run())
    assert json.loads((folder_of(run_id) / REQUEST_FILE).read_text()) == {"request": "pause"}
    assert bars(at)["state"] == "Pausing" and at.button(key="run-primary").disabled
    put_status(run_id, state="paused", phase="")
    at = checked(at.run())
    assert bars(at)["state"] == "Paused"
    at = checked(at.button(key="run-second").click().run())
    assert bars(at)["state"] == "Stopped"


def test_a_request_that_comes_too_late_is_answered_in_a_sentence():
    run_id = trained_run()
    at_work(run_id)
    at = open_page("train", run=run_id)
    put_status(run_id, state="finished")
    at = checked(at.button(key="run-second").click().run())
    assert plain(f"{run_id} cannot stop") in texts(at)


def test_the_newest_run_is_shown_and_another_can_be_chosen():
    first, second = trained_run(), made_run()
    at = open_page("train", run=second)
    at = checked(at.selectbox(key="run-on-show").set_value(first).run())
    assert at.query_params["run"] == first and bars(at)["state"] == "Finished"


def test_without_a_run_of_the_corpus_its_shipped_model_is_shown():
    trained_run()
    at = open_page("train", corpus="pronouns-en-fr")
    assert "learned this corpus" in texts(at) and len(at.get("plotly_chart")) == 1
