"""Runs: every run is in the table, any of them can be laid over each other, and nothing is deleted by one click."""

import json
import os

import psutil
import pytest
from page_models import checked, follow, open_page, texts
from page_runs import PINNED, made_run, put_status, trained_run

from pages.common.training.compare import entries
from pages.common.training.run_deeds import archive_bytes, next_seed
from pages.common.wording import plain
from transformer import corpora, runs, sweeps
from transformer.run_labels import about, rename, set_note
from transformer.settings import read_settings


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """An empty folder of runs, and no shipped models."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
    monkeypatch.setattr("transformer.settings.SHIPPED_FOLDER", tmp_path / "shipped")
    return tmp_path / "runs"


def table(at):
    """The rows that the table was given: cells by column title."""
    found = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    data = next(data for data in found if isinstance(data, dict) and "rows" in data)
    titles = [column["title"] for column in data["columns"]]
    return {row["id"]: row | dict(zip(titles, row["cells"], strict=True)) for row in data["rows"]}


def columns(at):
    """The titles between what was reached and when."""
    titles = [
        title for title in next(iter(table(at).values())) if title not in ("id", "cells", "shown", "chosen", "colour")
    ]
    return titles[6 : titles.index("parameters")]


def curves(at):
    return json.loads(at.get("plotly_chart")[0].proto.spec)


def button(at, label):
    return next(button for button in at.button if button.label == label)


def test_without_runs_the_page_invites_to_train():
    at = open_page("runs")
    assert "No runs yet" in texts(at) and not at.get("plotly_chart")


def test_the_table_tells_what_each_run_is_and_reached():
    run_id, waiting = trained_run(), made_run()
    rows = table(open_page("runs"))
    assert list(rows) == [waiting, run_id] or list(rows) == [run_id, waiting]
    row = rows[run_id]
    last = [r for r in runs.metrics(run_id) if r["split"] == "validation"][-1]
    assert (row["corpus"], row["state"], row["step"]) == ("reverse", "finished", "20")
    assert float(row["exact match, %"]) == pytest.approx(100 * last["exact_match"], abs=0.05)
    assert float(row["validation loss"]) == pytest.approx(last["loss"], rel=5e-3)
    assert rows[waiting]["state"] == "not started" and rows[waiting]["validation loss"] == "–"


def test_the_table_and_the_line_below_it_tell_the_same_step_and_time():
    run_id = trained_run()
    put_status(run_id, state="stopped", reason="asked", step=19, elapsed_s=42.0)  # resumed from before the last metrics
    at = open_page("runs", run=run_id)
    assert (table(at)[run_id]["step"], table(at)[run_id]["time"]) == ("19", "42 s")
    assert "step 19 of 20 · in 42 s" in texts(at)


def test_a_damaged_run_does_not_hide_the_others(room):
    run_id = trained_run()
    (room / made_run() / "config.json").write_text("{")
    assert list(table(open_page("runs"))) == [run_id]


def test_shipped_models_stand_beside_the_runs(room, monkeypatch):
    run_id = trained_run("mine")
    shipped = trained_run("theirs")
    (room.parent / "shipped").mkdir()
    (room / shipped).rename(room.parent / "shipped" / shipped)
    rows = table(open_page("runs"))
    assert {name: row["state"] for name, row in rows.items()} == {run_id: "finished", shipped: "shipped"}


def test_the_curves_of_the_shown_runs_are_laid_over_each_other():
    first, second, third = trained_run(), trained_run(seed=1), trained_run(seed=2)
    at = open_page("runs", show=[third, first])
    assert [line["name"] for line in curves(at)["data"]] == [third, first]
    assert [name for name, row in table(at).items() if row["shown"]] != [second]
    assert at.query_params["show"] == [third, first]


@pytest.mark.parametrize(
    ("key", "value", "axis", "title"),
    [
        ("quantity", "exact match", "yaxis", "exact match, %"),
        ("quantity", "training loss", "yaxis", "loss, nats per token"),
        ("against", "seconds", "xaxis", "seconds of training"),
        ("scale", "linear", "yaxis", "loss, nats per token"),
    ],
)
def test_quantity_axis_and_scale_can_be_chosen(key, value, axis, title):
    trained_run()
    at = open_page("runs")
    control = next(element for element in at.segmented_control if element.key == key)
    at = checked(control.set_value(value).run())
    layout = curves(at)["layout"]
    assert layout[axis]["title"]["text"] == title
    assert layout["yaxis"].get("type") == (None if value in ("linear", "exact match") else "log")


def test_smoothed_training_loss_is_named_as_such():
    trained_run()
    at = open_page("runs")
    at = checked(next(e for e in at.segmented_control if e.key == "quantity").set_value("training loss").run())
    assert "label-smoothed" in texts(at)


def test_deleting_is_asked_twice():
    run_id, other = trained_run(), trained_run()
    at = open_page("runs", run=run_id)
    at = checked(button(at, "Delete").click().run())
    assert "cannot be undone" in texts(at) and runs.run_folder(run_id).exists()
    at = checked(button(at, "Keep it").click().run())
    assert "cannot be undone" not in texts(at)
    at = checked(button(at, "Delete").click().run())
    at = checked(button(at, "Delete for good").click().run())
    assert list(table(at)) == [other]


def test_deleting_the_last_run_leaves_the_invitation():
    at = open_page("runs", run=trained_run())
    at = checked(button(at, "Delete").click().run())
    assert "No runs yet" in texts(checked(button(at, "Delete for good").click().run()))


def test_look_inside_opens_the_attention_page_on_the_run_in_hand():
    run_id = trained_run()
    at = follow(open_page("runs", run=run_id), "Look inside", "attention")
    assert at.selectbox(key="choose-model").value == run_id
    assert at.text_input(key="choose-text").value == PINNED[0]


def test_a_run_at_work_can_be_paused_and_stopped_but_not_deleted():
    run_id = trained_run()
    me = psutil.Process(os.getpid())
    put_status(run_id, state="running", phase="training", pid=me.pid, create_time=me.create_time())
    at = open_page("runs", run=run_id)
    assert table(at)[run_id]["state"] == "training"
    assert "Delete" not in [button.label for button in at.button]
    at = checked(button(at, "Stop").click().run())
    assert json.loads((runs.run_folder(run_id) / runs.REQUEST_FILE).read_text()) == {"request": "stop"}
    assert table(at)[run_id]["state"] == "stopping"


def test_a_paused_run_is_resumed(monkeypatch):
    started = []
    monkeypatch.setattr(runs, "resume", lambda run_id, **_: started.append(run_id))
    run_id = trained_run()
    put_status(run_id, state="paused", reason="")
    checked(button(open_page("runs", run=run_id), "Resume").click().run())
    assert started == [run_id]


def test_a_failed_run_says_its_sentence():
    run_id = made_run()
    put_status(run_id, state="failed", error="the disk is full")
    assert "The disk is full" in texts(open_page("runs", run=run_id))


def test_a_link_to_runs_that_are_gone_says_so():
    run_id = trained_run()
    at = open_page("runs", show=["gone-1", run_id], run="gone-2")
    assert plain("“gone-1”, “gone-2”") in texts(at)
    assert [line["name"] for line in curves(at)["data"]] == [run_id]


def test_with_shipped_models_alone_the_page_still_invites(room):
    shipped = trained_run("theirs")
    (room.parent / "shipped").mkdir()
    (room / shipped).rename(room.parent / "shipped" / shipped)
    at = open_page("runs")
    assert list(table(at)) == [shipped]
    assert next(link.proto.label for link in at.get("page_link")).startswith("None of these is yours yet")


def test_the_table_shows_the_settings_that_differ_and_no_others():
    first = trained_run()
    assert columns(open_page("runs")) == []
    second = trained_run(seed=4, label_smoothing=0.0)
    at = open_page("runs")
    assert columns(at) == ["label_smoothing", "seed"]
    rows = table(at)
    assert (rows[first]["seed"], rows[second]["seed"]) == ("0", "4")
    assert (rows[first]["label_smoothing"], rows[second]["label_smoothing"]) == ("0.1", "0")


def test_a_shipped_model_adds_no_columns_beside_two_runs(room):
    trained_run(), trained_run()
    shipped = trained_run("theirs", seed=9)
    (room.parent / "shipped").mkdir()
    (room / shipped).rename(room.parent / "shipped" / shipped)
    assert columns(open_page("runs")) == []


def typed(at, label):
    return next(field for field in (*at.text_input, *at.text_area) if field.label == label)


def press(at, label):
    return checked(button(at, label).click().run())


def test_a_run_gets_another_name_and_stays_in_hand():
    run_id = trained_run()
    at = press(open_page("runs", run=run_id, show=run_id), "Rename")
    assert typed(at, "New name").value == run_id
    typed(at, "New name").set_value("best-yet")
    at = press(at, "Give it this name")
    assert list(table(at)) == ["best-yet"] and table(at)["best-yet"]["chosen"] and table(at)["best-yet"]["shown"]
    assert "New name" not in [field.label for field in at.text_input]
    assert read_settings(runs.run_folder("best-yet")).name == "best-yet"


def test_a_name_that_cannot_be_is_refused_and_what_was_typed_stays():
    run_id, other = trained_run(), trained_run()
    at = press(open_page("runs", run=run_id), "Rename")
    typed(at, "New name").set_value(other)
    at = press(at, "Give it this name")
    assert plain(f"There is already a run called {other}: take another name.") in texts(at)
    assert typed(at, "New name").value == other and runs.run_folder(run_id).exists()
    at = press(at, "Leave it")
    assert "New name" not in [field.label for field in at.text_input]


def test_a_link_to_a_former_name_leads_to_the_run():
    run_id = trained_run()
    rename(run_id, "later")
    at = open_page("runs", run=run_id, show=run_id)
    assert "which is not here" not in texts(at) and table(at)["later"]["chosen"]


def test_a_note_is_kept_shown_and_escaped():
    run_id = trained_run()
    at = press(open_page("runs", run=run_id), "Note")
    typed(at, "Note").set_value("<b>four</b> heads\n*second* line")
    at = press(at, "Keep the note")
    assert about(runs.run_folder(run_id)).note == "<b>four</b> heads\n*second* line"
    assert plain("<b>four</b> heads") in texts(at) and plain("*second* line") in texts(at)
    assert table(at)[run_id]["note"] == "<b>four</b> heads *second* line"
    at = press(at, "Note")
    at = press(at, "Leave it")
    assert "Note" not in [field.label for field in at.text_area]


def test_a_run_can_be_downloaded_and_says_what_stays_here():
    run_id = trained_run()
    at = open_page("runs", run=run_id)
    assert "Snapshots and the state to resume from stay here" in texts(at)
    (download,) = at.get("download_button")
    assert download.proto.label == f"Download {run_id}.zip"
    assert archive_bytes(run_id, with_corpus=False)[:2] == b"PK"


def upload(at, content):
    (field,) = at.get("file_uploader")
    return checked(field.set_value(("model.zip", content, "application/zip")).run())


def test_an_archive_is_loaded_and_taken_in_hand():
    run_id = trained_run()
    set_note(run_id, "from afar")
    packed = archive_bytes(run_id, with_corpus=False)
    at = upload(open_page("runs", view="Sweeps"), packed)
    assert table(at)[f"{run_id}-2"]["chosen"] and table(at)[f"{run_id}-2"]["shown"]
    assert "loaded from an archive" in texts(at) and "from afar" in texts(at)
    (field,) = at.get("file_uploader")
    assert not field.value


def test_an_archive_can_be_the_first_run(room):
    run_id = trained_run()
    packed = archive_bytes(run_id, with_corpus=False)
    runs.delete(run_id)
    assert list(table(upload(open_page("runs"), packed))) == [run_id]


def test_what_is_no_archive_is_refused_with_a_sentence():
    run_id = trained_run()
    at = upload(open_page("runs"), b"PK\x03\x04 rubbish")
    assert plain("The archive was not loaded: it is not a zip archive") in texts(at)
    assert list(table(at)) == [run_id]


def test_continuing_opens_train_with_the_plan_of_this_run_and_its_weights():
    run_id = trained_run(seed=5)
    at = follow(open_page("runs", run=run_id), "Continue with other settings", "train")
    assert at.query_params["start_from"] == run_id and at.query_params["seed"] == "5"
    assert at.query_params["d_model"] == "16"


@pytest.fixture
def queued(monkeypatch):
    """What was started; nothing is trained."""
    found = []

    def start(run_id, *, owner=""):
        found.append(run_id)
        put_status(run_id, state="queued", phase="waiting")

    monkeypatch.setattr(runs, "start", start)
    return found


def test_repeating_starts_the_same_run_with_the_next_seed(queued):
    run_id = trained_run(seed=2)
    made_run(seed=6)
    at = press(open_page("runs", run=run_id), "Repeat with another seed")
    (again,) = queued
    first, second = (read_settings(runs.run_folder(name)) for name in (run_id, again))
    assert second.train.seed == 7 and second.model == first.model and second.pinned == first.pinned
    assert table(at)[again]["chosen"] and table(at)[again]["shown"] and table(at)[again]["state"] == "waiting"
    assert next_seed(first, [entry.run for entry in entries() if entry.run]) == 8


def test_a_repeat_that_cannot_start_says_why(monkeypatch):
    def refuse(run_id, *, owner=""):
        raise runs.RunError("your runs take 9 MB on disk, and a visitor may use 8 MB: delete a run first")

    monkeypatch.setattr(runs, "start", refuse)
    at = press(open_page("runs", run=trained_run()), "Repeat with another seed")
    assert "The run was not started" in texts(at) and "delete a run first" in texts(at)


def test_the_timeline_of_the_run_in_hand_stands_below():
    run_id = trained_run()
    assert "The timeline of a sentence" in texts(open_page("runs", run=run_id))


def test_a_sweep_is_planned_from_a_run_and_started(queued):
    run_id = trained_run()
    at = press(open_page("runs", run=run_id), "Sweep over a setting")
    assert at.query_params["view"] == "Sweeps" and at.selectbox(key="base").value == run_id
    at = checked(at.selectbox(key="setting").set_value("train.label_smoothing").run())
    assert plain(f"{run_id} has train.label_smoothing 0.1.") in texts(at)
    at = checked(at.text_input(key="values").set_value("0, 0.2").run())
    at = press(at, "Train 2 runs")
    (sweep,) = sweeps.sweeps_of(runs.list_runs())
    assert [part.value for part in sweep.parts] == [0.0, 0.2] and [part.run.id for part in sweep.parts] == queued
    assert at.query_params["sweep"] == sweep.id
    assert [row["label_smoothing"] for row in table(at).values()] == ["0", "0.2"]
    assert "2 waiting" in texts(at)
    at = press(at, "Cancel the sweep")
    assert {part.run.status.state for part in sweeps.sweeps_of(runs.list_runs())[0].parts} == {"stopped"}
    queued.clear()
    press(at, "Train the rest")
    assert queued == [part.run.id for part in sweep.parts]


def test_values_that_cannot_be_are_named_at_their_field_before_anything_starts(queued):
    run_id = trained_run()
    at = open_page("runs", view="Sweeps", setting="model.n_heads", values="1 3 x", base=run_id)
    said = plain("2 of the values of model.n_heads cannot be: 3: d_model (16) must be divisible by n_heads (3)")
    assert said in texts(at) and plain("x: it must be a whole number") in texts(at)
    assert button(at, "Train 3 runs").disabled and at.text_input(key="values").value == "1 3 x"
    assert runs.list_runs()[0].id == run_id and len(runs.list_runs()) == 1


@pytest.fixture
def trained_sweep():
    run_id = made_run("base")
    settings = read_settings(runs.run_folder(run_id))
    base = sweeps.Base(model=settings.model, train=settings.train, corpus=settings.corpus, pinned=PINNED)
    sweep = sweeps.create_sweep(base, "model.n_heads", ["1", "2"])
    from transformer.worker import train_run

    for part in sweep.parts:
        train_run(part.run.id)
    return sweep


def test_a_sweep_is_one_chart_with_its_curves_and_a_table(trained_sweep):
    at = open_page("runs", view="Sweeps", sweep=trained_sweep.id)
    chart, overlay = (json.loads(element.proto.spec) for element in at.get("plotly_chart"))
    marks = {trace["x"][0]: trace["y"][0] for trace in chart["data"] if trace["mode"] == "markers"}
    for part in trained_sweep.parts:
        last = [row for row in runs.metrics(part.run.id) if row["split"] == "validation"][-1]
        assert marks[part.value] == pytest.approx(last["loss"])
    assert chart["layout"]["xaxis"]["title"]["text"] == "model.n_heads"
    assert [line["name"] for line in overlay["data"]] == [part.run.id for part in trained_sweep.parts]
    at = checked(next(e for e in at.segmented_control if e.key == "metric").set_value("exact match").run())
    chart = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert chart["layout"]["yaxis"]["title"]["text"] == "exact match, %"


def test_another_sweep_can_be_chosen(trained_sweep):
    settings = trained_sweep.parts[0].run.settings
    base = sweeps.Base(model=settings.model, train=settings.train, corpus=settings.corpus)
    newer = sweeps.create_sweep(base, "train.seed", ["0", "1"])
    at = open_page("runs", view="Sweeps", sweep=trained_sweep.id)
    choice = next(box for box in at.selectbox if box.label == "Sweep")
    assert choice.value == trained_sweep.id
    at = checked(choice.set_value(newer.id).run())
    assert "2 not started" in texts(at)


def test_without_sweeps_the_view_says_what_one_is():
    trained_run()
    assert "No sweep yet" in texts(open_page("runs", view="Sweeps"))
