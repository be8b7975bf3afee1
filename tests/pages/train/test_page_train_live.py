"""Train, a run at work: what its page is sent while it learns, without a run of the page."""

import json

import pytest
from page_models import open_page
from page_runs import PINNED, at_work, put_status, trained_run
from page_train import bars

from pages.shared.live.watches import WATCHES, Look
from pages.training.live.run_parts import parts_of
from transformer.analysis.training.progress import samples_of
from transformer.runs import run_folder
from transformer.runs.status import status
from transformer.views.training.runs import RunCurves

pytestmark = pytest.mark.usefixtures("room", "measurements")


@pytest.fixture
def run_id():
    made = trained_run()
    at_work(made)
    return made


def watch_of(at):
    return WATCHES.get(bars(at)["live"]["address"].rpartition("/")[2])


def test_the_stream_draws_what_the_page_drew(run_id):
    at = open_page("train", run=run_id)
    watch = watch_of(at)
    assert [part.name for part in watch.parts] == ["state", "curves", "sentences"] and watch.text == ""
    look = Look(run_folder.get_run(run_id), None)
    shown = {}
    for element in at.get("bidi_component"):
        data = json.loads(element.proto.json or "{}")
        if live := data.pop("live", None):
            shown[live["part"]] = (live["step"], data)
    assert shown == {part.name: part.data(look) for part in watch.parts}


def test_the_numbers_move_with_the_metrics_which_come_more_often_than_the_status(run_id):
    state, *_ = parts_of(run_folder.get_run(run_id), RunCurves())
    assert set(state.on) == {"status", "metrics"}
    newest = status(run_id).step
    put_status(run_id, step=0)
    step, data = state.data(Look(run_folder.get_run(run_id), None))
    assert step == newest > 0 and data["rest"].startswith(f"step {newest} of")


def test_a_request_is_told_to_everyone_who_follows_the_run(run_id):
    state, *_ = parts_of(run_folder.get_run(run_id), RunCurves())
    run_folder.pause(run_id)
    _, data = state.data(Look(run_folder.get_run(run_id), None))
    assert data["state"] == "Pausing"


def test_sentences_come_with_their_newest_translation(run_id):
    run = run_folder.get_run(run_id)
    sentences = parts_of(run, RunCurves())[-1]
    step, data = sentences.data(Look(run, None))
    assert [one["source"] for one in data["sentences"]] == list(PINNED)
    newest = samples_of(run.folder)[PINNED[0]][-1]
    assert data["sentences"][0]["samples"][-1] == {"step": newest.step, "translation": newest.translation}
    assert step == newest.step


def test_other_curves_are_another_stream(run_id):
    run = run_folder.get_run(run_id)
    assert parts_of(run, RunCurves()) == parts_of(run, RunCurves())
    assert parts_of(run, RunCurves(panels=("perplexity",))) != parts_of(run, RunCurves())
