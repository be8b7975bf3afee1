"""The name and the note of a run: its former names lead to it, and neither is lost on the way."""

import os

import pytest
from archives import loaded
from tiny_runs import MODEL, settings

from transformer import locks
from transformer.checkpoints.settings import read_settings
from transformer.config import CorpusConfig
from transformer.lab import load
from transformer.runs import run_folder
from transformer.runs.labels import about, rename, set_note
from transformer.runs.status import LOCK_FILE, WAITING, RunError, Status, write_status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run

pytestmark = pytest.mark.usefixtures("only_the_origin")


def test_a_renamed_run_is_the_same_under_its_new_name_and_its_old_one_leads_to_it(packed, archive_room):
    run_id = loaded(packed)
    rename(run_id, "better")
    assert not (archive_room / run_id).exists() and load("better").name == "better"
    assert load(run_id).name == "better"
    assert (read_settings(archive_room / "better").name, about(archive_room / "better").note) == (
        "better",
        "the first one",
    )
    rename("better", run_id)
    assert about(archive_room / run_id).formerly == ("better",)


def test_the_card_is_headed_by_the_new_name(archive_room):
    run_id = run_folder.create_run(MODEL, settings(max_steps=2), CorpusConfig(name="reverse"), pinned=(), name="carded")
    train_run(run_id)
    rename(run_id, "headed")
    assert (archive_room / "headed" / "CARD.md").read_text().startswith("# headed\n")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "cannot be a run's name"),
        ("../up", "cannot be a run's name"),
        ("a b", "cannot be a run's name"),
        ("é", "cannot be a run's name"),
        ("x" * 81, "at most 80"),
        ("origin", "there is already a run called origin"),
        ("reverse", "there is a shipped model called reverse"),
    ],
)
def test_a_name_that_cannot_be_given_is_refused(packed, name, sentence):
    run_id = loaded(packed)
    with pytest.raises(RunError, match=sentence):
        rename(run_id, name)
    assert folder_of(run_id)


def test_a_run_at_work_or_in_the_queue_keeps_its_name(packed, archive_room):
    run_id = loaded(packed)
    lock = locks.take(archive_room / run_id / LOCK_FILE)
    assert lock is not None
    with pytest.raises(RunError, match="is at work: pause or stop it"):
        rename(run_id, "other")
    os.close(lock)
    write_status(archive_room / run_id, Status(state="queued", phase=WAITING))
    with pytest.raises(RunError, match="waits for its turn: pause or stop it"):
        rename(run_id, "other")


def test_a_note_has_a_limit_and_can_be_taken_away(packed, archive_room):
    run_id = loaded(packed)
    with pytest.raises(RunError, match="2,001 characters"):
        set_note(run_id, "x" * 2_001)
    set_note(run_id, "  two\nlines ")
    assert about(archive_room / run_id).note == "two\nlines"
    set_note(run_id, "")
    assert about(archive_room / run_id).note == ""
