"""Tests of the actions on a run: rename, note, archive, delete after a confirmation, repeat, continue."""

import json

import pytest
from page_models import checked, follow, open_page, texts
from page_runs import at_work, button, made_run, press, table, trained_run, typed

from pages.runs.actions import archive_bytes, next_seed
from pages.shared.wording import plain
from pages.training.compare import entries
from transformer.checkpoints.settings import read_settings
from transformer.runs import run_folder
from transformer.runs.labels import about, rename, set_note
from transformer.runs.status import REQUEST_FILE, RunError
from transformer.runs.status import run_folder as folder_of

pytestmark = pytest.mark.usefixtures("room", "no_shipped")


def test_deleting_is_asked_twice():
    run_id, other = trained_run(), trained_run()
    at = open_page("runs", run=run_id)
    at = checked(button(at, "Delete").click().run())
    assert "cannot be undone" in texts(at) and folder_of(run_id).exists()
    at = checked(button(at, "Keep it").click().run())
    assert "cannot be undone" not in texts(at)
    at = checked(button(at, "Delete").click().run())
    at = checked(button(at, "Delete for good").click().run())
    assert list(table(at)) == [other]


def test_deleting_the_last_run_leaves_the_invitation():
    at = open_page("runs", run=trained_run())
    at = checked(button(at, "Delete").click().run())
    assert "No runs yet" in texts(checked(button(at, "Delete for good").click().run()))


def test_a_run_at_work_can_be_paused_and_stopped_but_not_deleted():
    run_id = trained_run()
    at_work(run_id)
    at = open_page("runs", run=run_id)
    assert table(at)[run_id]["state"] == "training"
    assert "Delete" not in [button.label for button in at.button]
    at = checked(button(at, "Stop").click().run())
    assert json.loads((folder_of(run_id) / REQUEST_FILE).read_text()) == {"request": "stop"}
    assert table(at)[run_id]["state"] == "stopping"


def test_a_run_gets_another_name_and_stays_in_hand():
    run_id = trained_run()
    at = press(open_page("runs", run=run_id, show=run_id), "Rename")
    assert typed(at, "New name").value == run_id
    typed(at, "New name").set_value("best-yet")
    at = press(at, "Save name")
    assert list(table(at)) == ["best-yet"] and table(at)["best-yet"]["chosen"] and table(at)["best-yet"]["shown"]
    assert "New name" not in [field.label for field in at.text_input]
    assert read_settings(folder_of("best-yet")).name == "best-yet"


def test_a_name_with_spaces_gets_hyphens_and_the_field_says_so_before():
    run_id = trained_run()
    at = press(open_page("runs", run=run_id), "Rename")
    assert "a space becomes a hyphen" in texts(at)
    typed(at, "New name").set_value(" best  so far ")
    at = press(at, "Save name")
    assert list(table(at)) == ["best-so-far"] and "cannot be" not in texts(at)


def test_a_name_that_cannot_be_is_refused_and_what_was_typed_stays():
    run_id, other = trained_run(), trained_run()
    at = press(open_page("runs", run=run_id), "Rename")
    typed(at, "New name").set_value(other)
    at = press(at, "Save name")
    assert plain(f"There is already a run called {other}: take another name.") in texts(at)
    assert typed(at, "New name").value == other and folder_of(run_id).exists()
    at = press(at, "Cancel")
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
    at = press(at, "Save note")
    assert about(folder_of(run_id)).note == "<b>four</b> heads\n*second* line"
    assert plain("<b>four</b> heads") in texts(at) and plain("*second* line") in texts(at)
    assert table(at)[run_id]["note"] == "<b>four</b> heads *second* line"
    at = press(at, "Note")
    at = press(at, "Cancel")
    assert "Note" not in [field.label for field in at.text_area]


def test_a_run_can_be_downloaded_and_says_what_stays_here():
    run_id = trained_run()
    at = open_page("runs", run=run_id)
    assert "Snapshots and the state needed to resume stay here" in texts(at)
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
    at = upload(open_page("runs", tab="Sweeps"), packed)
    assert table(at)[f"{run_id}-2"]["chosen"] and table(at)[f"{run_id}-2"]["shown"]
    assert "loaded from an archive" in texts(at) and "from afar" in texts(at)
    (field,) = at.get("file_uploader")
    assert not field.value


def test_an_archive_can_be_the_first_run(room):
    run_id = trained_run()
    packed = archive_bytes(run_id, with_corpus=False)
    run_folder.delete(run_id)
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


def test_repeating_starts_the_same_run_with_the_next_seed(queued):
    run_id = trained_run(seed=2)
    made_run(seed=6)
    at = press(open_page("runs", run=run_id), "Repeat with another seed")
    (again,) = queued
    first, second = (read_settings(folder_of(name)) for name in (run_id, again))
    assert second.train.seed == 7 and second.model == first.model and second.pinned == first.pinned
    assert table(at)[again]["chosen"] and table(at)[again]["shown"] and table(at)[again]["state"] == "waiting"
    assert next_seed(first, [entry.run for entry in entries() if entry.run]) == 8


def test_a_repeat_that_cannot_start_says_why(monkeypatch):
    def refuse(run_id):
        raise RunError("your runs take 9 MB on disk, and a visitor may use 8 MB: delete a run first")

    monkeypatch.setattr(run_folder, "start", refuse)
    at = press(open_page("runs", run=trained_run()), "Repeat with another seed")
    assert "The run was not started" in texts(at) and "delete a run first" in texts(at)
