"""Sweeps on the Runs page: one setting over several values, refused at its field, and drawn as one chart."""

import json

import pytest
from page_models import checked, field, open_page, texts
from page_runs import PINNED, button, made_run, press, table, trained_run

from pages.shared.wording import plain
from transformer.checkpoints.settings import read_settings
from transformer.runs import run_folder, sweeps
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run

pytestmark = pytest.mark.usefixtures("room", "no_shipped")


def test_a_sweep_is_planned_from_a_run_and_started(queued):
    run_id = trained_run()
    at = press(open_page("runs", run=run_id), "Sweep over a setting")
    assert at.query_params["tab"] == "Sweeps" and at.selectbox(key="sweep-base").value == run_id
    at = checked(at.selectbox(key="sweep-setting").set_value("train.label_smoothing").run())
    assert plain(f"Label smoothing of {run_id}: 0.1.") in texts(at)
    at = checked(at.text_input(key="sweep-values").set_value("0, 0.2").run())
    assert plain("The sweep tries 0 · 0.2.") in texts(at)
    at = press(at, "Train 2 runs")
    (sweep,) = sweeps.sweeps_of(run_folder.list_runs())
    assert [part.value for part in sweep.parts] == [0.0, 0.2] and [part.run.id for part in sweep.parts] == queued
    assert at.query_params["sweep"] == sweep.id
    assert [row["label smoothing"] for row in table(at).values()] == ["0", "0.2"]
    assert "2 waiting" in texts(at)
    at = press(at, "Cancel the sweep")
    assert {part.run.status.state for part in sweeps.sweeps_of(run_folder.list_runs())[0].parts} == {"stopped"}
    queued.clear()
    press(at, "Train the rest")
    assert queued == [part.run.id for part in sweep.parts]


def test_values_that_cannot_be_are_named_at_their_field_before_anything_starts(queued):
    run_id = trained_run()
    at = open_page("runs", tab="Sweeps", setting="model.n_heads", values="1 3 x", base=run_id)
    said = plain("2 of the values of model.n_heads cannot be: 3: d_model (16) must be divisible by n_heads (3)")
    assert said in texts(at) and plain("x: it must be a whole number") in texts(at)
    assert button(at, "Train 3 runs").disabled and at.text_input(key="sweep-values").value == "1 3 x"
    assert run_folder.list_runs()[0].id == run_id and len(run_folder.list_runs()) == 1


def test_it_is_said_which_values_are_read_where_a_comma_was_meant_for_thousands(queued):
    at = open_page("runs", tab="Sweeps", setting="train.max_steps", values="1,500 3", base=trained_run())
    assert plain("The sweep tries 1 · 500 · 3.") in texts(at)


@pytest.fixture
def trained_sweep():
    run_id = made_run("base")
    settings = read_settings(folder_of(run_id))
    base = sweeps.Base(model=settings.model, train=settings.train, corpus=settings.corpus, pinned=PINNED)
    sweep = sweeps.create_sweep(base, "model.n_heads", ["1", "2"])
    for part in sweep.parts:
        train_run(part.run.id)
    return sweep


def test_a_sweep_is_one_chart_with_its_curves_and_a_table(trained_sweep):
    at = open_page("runs", tab="Sweeps", sweep=trained_sweep.id)
    chart, overlay = (json.loads(element.proto.spec) for element in at.get("plotly_chart"))
    marks = {trace["x"][0]: trace["y"][0] for trace in chart["data"] if trace["mode"] == "markers"}
    for part in trained_sweep.parts:
        last = [row for row in run_folder.metrics(part.run.id) if row["split"] == "validation"][-1]
        assert marks[part.value] == pytest.approx(last["loss"])
    assert chart["layout"]["xaxis"]["title"]["text"] == "Heads"
    assert [line["name"] for line in overlay["data"]] == [part.run.id for part in trained_sweep.parts]
    at = checked(next(e for e in at.segmented_control if e.key == "runs-metric").set_value("exact match").run())
    chart = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert chart["layout"]["yaxis"]["title"]["text"] == "exact match, %"


def test_another_sweep_can_be_chosen(trained_sweep):
    settings = trained_sweep.parts[0].run.settings
    base = sweeps.Base(model=settings.model, train=settings.train, corpus=settings.corpus)
    newer = sweeps.create_sweep(base, "train.seed", ["0", "1"])
    at = open_page("runs", tab="Sweeps", sweep=trained_sweep.id)
    choice = next(box for box in at.selectbox if box.label == "Sweep")
    assert choice.value == trained_sweep.id
    at = checked(choice.set_value(newer.id).run())
    assert "2 not started" in texts(at)


def test_without_sweeps_the_view_says_what_one_is():
    trained_run()
    assert "No sweep yet" in texts(open_page("runs", tab="Sweeps"))


def test_the_sweep_that_is_being_filled_in_travels_in_the_link():
    run_id = trained_run()
    at = open_page("runs", tab="Sweeps")
    at = checked(at.selectbox(key="sweep-setting").set_value("train.seed").run())
    at = checked(at.text_input(key="sweep-values").set_value("0 1").run())
    assert at.query_params == {"tab": "Sweeps", "show": run_id, "run": run_id, "setting": "train.seed", "values": "0 1"}
    again = open_page("runs", **at.query_params)
    assert again.selectbox(key="sweep-setting").value == "train.seed" and button(again, "Train 2 runs")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("tab", "The link says tab “zzz”, which must be one of: Runs, Sweeps"),
        ("sweep", "The link asks for “zzz”, which is not here"),
        ("metric", "The link says metric “zzz”, which must be one of: validation loss"),
        ("base", "The link asks for “zzz”, which is not here"),
        ("setting", "The link says setting “zzz”, which must be one of: model.d_model"),
    ],
)
def test_what_a_link_to_the_sweeps_asks_in_vain_is_said_until_the_next_choice(trained_sweep, place, said):
    at = open_page("runs", **{"tab": "Sweeps", place: "zzz"})
    assert plain(said) in texts(at) and "zzz" not in at.query_params.values()
    at = checked(field(at.segmented_control, "What to see").set_value("Runs" if place != "tab" else "Sweeps").run())
    assert "zzz" not in texts(at)


def test_sweeps_and_runs_can_be_chosen_in_turn():
    run_id = trained_run()
    at = open_page("runs")
    for view, said in (("Sweeps", "No sweep yet"), ("Runs", plain(run_id)), ("Sweeps", "No sweep yet")):
        at = checked(field(at.segmented_control, "What to see").set_value(view).run())
        assert said in texts(at) and not at.toast
