"""A model as a zip file: what goes out comes back the same."""

from pathlib import Path

import pytest
from archives import archive_of, contents, edited, loaded, repacked
from tiny_runs import MODEL, settings

from transformer.checkpoints.settings import read_settings
from transformer.config import CorpusConfig
from transformer.data.corpus_snapshot import AbsentCorpus, load_own
from transformer.lab import load
from transformer.runs import run_folder
from transformer.runs.archive import LOADED, save_archive
from transformer.runs.labels import about
from transformer.runs.status import RunError
from transformer.runs.status import status as status_of
from transformer.runs.worker import train_run

pytestmark = pytest.mark.usefixtures("only_the_origin")


def test_what_goes_out_comes_back_the_same(origin, packed, archive_room):
    run_id = loaded(packed)
    assert run_id == "origin-2"
    for name in ("weights.safetensors", "tokenizer.json", "metrics.jsonl", "samples.jsonl", "CARD.md"):
        assert (archive_room / run_id / name).read_bytes() == (archive_room / origin / name).read_bytes(), name
    assert load(run_id).translate(["a b c"]) == load(origin).translate(["a b c"])
    assert about(archive_room / run_id).note == "the first one"
    status = status_of(run_id)
    assert (status.state, status.step, status.reason) == ("finished", 20, LOADED)
    assert read_settings(archive_room / run_id).name == run_id
    assert [run.id for run in run_folder.list_runs()].count(run_id) == 1


def test_an_archive_holds_no_state_no_snapshots_and_nothing_of_this_machine(packed, archive_room):
    assert set(contents(packed)) == {
        *("config.json", "tokenizer.json", "weights.safetensors", "metrics.jsonl", "samples.jsonl", "CARD.md"),
        "about.json",
    }
    assert str(archive_room).encode() not in packed


def test_the_same_model_gives_the_same_archive(origin, packed):
    assert archive_of(origin) == packed


def test_a_half_written_row_stays_behind(origin, archive_room):
    path = archive_room / origin / "metrics.jsonl"
    kept = path.read_bytes()
    try:
        path.write_bytes(kept + b'{"split": "train", "st')
        assert contents(archive_of(origin))["metrics.jsonl"] == kept
    finally:
        path.write_bytes(kept)


def test_names_that_are_taken_get_a_number(packed, archive_room):
    assert [loaded(packed), loaded(packed)] == ["origin-2", "origin-3"]


def test_a_name_that_cannot_be_one_is_made_into_one(packed, archive_room):
    assert (
        loaded(repacked(packed, {"config.json": edited(packed, "config.json", name="../../évil name")})) == "vil-name"
    )


def test_files_without_a_folder_of_their_own_are_read_and_strangers_left_out(packed, archive_room):
    extra = [("__MACOSX/config.json", b"{}"), ("notes/readme.txt", b"x")]
    run_id = loaded(repacked(packed, {"strange.txt": b"x"}, prefix="", extra=extra))
    assert not (archive_room / run_id / "strange.txt").exists() and not (archive_room / run_id / "notes").exists()


def test_an_archive_is_saved_whole_and_never_over_another(origin, tmp_path):
    path = tmp_path / "model.zip"
    save_archive(origin, path)
    with pytest.raises(FileExistsError, match="already there"):
        save_archive(origin, path)
    with pytest.raises(RunError):
        save_archive("gone", tmp_path / "other.zip")
    assert [item.name for item in tmp_path.iterdir()] == ["model.zip"]


@pytest.fixture
def of_a_file(tmp_path):
    """A run that learned from a file."""
    path = tmp_path / "my pairs.tsv"
    path.write_text("".join(f"word{i} a\tmot{i} b\n" for i in range(400)), encoding="utf-8")
    corpus = CorpusConfig(name=str(path), tokenizer="words")
    run_id = run_folder.create_run(MODEL, settings(max_steps=2), corpus, pinned=(), name="of-a-file")
    train_run(run_id)
    return run_id


def test_the_corpus_file_is_left_out_unless_it_is_asked_for(of_a_file, archive_room):
    without, with_it = archive_of(of_a_file), archive_of(of_a_file, with_corpus=True)
    assert not any("corpus/" in name for name in contents(without))
    first, second = loaded(without), loaded(with_it)
    with pytest.raises(AbsentCorpus, match="without the sentences that it learned from"):
        load_own(read_settings(archive_room / first).corpus, archive_room / first)
    brought = load_own(read_settings(archive_room / second).corpus, archive_room / second)
    assert brought.train == load_own(read_settings(archive_room / of_a_file).corpus, archive_room / of_a_file).train


def test_a_generated_corpus_has_no_file_to_add(origin):
    with pytest.raises(RunError, match="no corpus file to add"):
        archive_of(origin, with_corpus=True)


def test_an_archive_does_not_choose_what_is_read_on_this_machine(packed, archive_room):
    for path in ("/etc/passwd.tsv", "../origin/secret.tsv", "C:\\secret.tsv", "a\0b.tsv"):
        run_id = loaded(repacked(packed, {"config.json": edited(packed, "config.json", corpus__name=path)}))
        folder, name = Path(read_settings(archive_room / run_id).corpus.name).parts
        assert folder == "corpus" and name in ("passwd.tsv", "secret.tsv", "a-b.tsv")
