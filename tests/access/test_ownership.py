"""A second visitor who tries everything at the first one's runs and files, by each function that there is."""

import os
import re
from io import BytesIO

import pytest
from tiny_runs import MODEL, settings

from transformer.access.ownership import owner_of
from transformer.access.people import NOBODY, PERSON, Person, acting_as, for_this_person, identify_by, operator
from transformer.capsules.capsule import Shown, write_capsule
from transformer.capsules.contents import CapsuleError
from transformer.checkpoints.settings import CheckpointError, list_checkpoints, read_settings, renamed
from transformer.config import CorpusConfig
from transformer.data.corpora import CorpusError
from transformer.data.corpus_cache import prepared
from transformer.data.corpus_snapshot import load_own
from transformer.data.uploads import find_upload, list_uploads, save_upload
from transformer.experiments.results import own_file
from transformer.files import write_json
from transformer.lab import load
from transformer.runs import queue, run_folder
from transformer.runs.archive import load_archive, write_archive
from transformer.runs.labels import about, keep, rename, set_note
from transformer.runs.run_folder import create_run, get_run, list_runs
from transformer.runs.sharing import share, unshare
from transformer.runs.status import RunError, Status, write_status
from transformer.runs.sweeps import Base, cancel_sweep, create_sweep, start_sweep, sweeps_of
from transformer.runs.warm_start import same_start, start_of
from transformer.runs.worker import train_run

ADA, BOB, TEACHER = Person(id="ada"), Person(id="bob"), Person(id="tess", is_teacher=True)
HERS = "private-lessons"
PAIRS = "".join(f"secret {i} word\tmot {i} secret\n" for i in range(300)).encode()


@pytest.fixture(autouse=True)
def no_trainers(monkeypatch):
    """In place of a trainer, this process is said to work on what is started."""

    def launch(folder, threads, lock):
        write_status(folder, Status(state="running", phase="training", pid=os.getpid()))

    monkeypatch.setattr(queue, "launch", launch)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Ada's run of her own file, trained for a step, in a folder of runs."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch, acting_as(ADA):
        patch.setenv("ATTENTION_LAB_RUNS", str(root))
        path = save_upload("hers.tsv", PAIRS)
        corpus = CorpusConfig(name=str(path), tokenizer="char")
        create_run(MODEL, settings(max_steps=1), corpus, name=HERS, pinned=("secret 1 word",))
        set_note(HERS, "her note")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(root))
        train_run(HERS)
    return root


@pytest.fixture
def hers(trained, monkeypatch):
    """The folder of Ada's run."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(trained))
    return trained / HERS


def bobs_corpus(path):
    return create_run(MODEL, settings(), CorpusConfig(name=str(path), tokenizer="char"), name="stolen")


def capsule(folder):
    lab = load(folder.name)
    write_capsule(BytesIO(), [Shown(lab, lab.inspect("word"))], page="attention")


def copy_of(folder):
    return next((folder / "corpus").glob("*.tsv"))


LOOKS = {
    "by its id": lambda folder: get_run(folder.name),
    "its status": lambda folder: run_folder.status(folder.name),
    "its metrics": lambda folder: run_folder.metrics(folder.name),
    "its snapshots": lambda folder: run_folder.snapshots(folder.name),
    "its model": lambda folder: load(folder.name),
}
TAKES = {
    "its sentences": lambda folder: run_folder.samples(folder.name),
    "its archive": lambda folder: write_archive(folder.name, BytesIO()),
    "its archive with the file": lambda folder: write_archive(folder.name, BytesIO(), with_corpus=True),
    "its capsule": capsule,
    "its weights to begin with": lambda folder: start_of(folder.name),
    "itself to repeat or sweep over": lambda folder: same_start(folder, read_settings(folder)),
    "the pairs of its file": lambda folder: load_own(read_settings(folder).corpus, folder),
    "the tokens of its file": lambda folder: prepared(CorpusConfig(name=str(copy_of(folder)), tokenizer="char")),
}
FILES = {
    "its file": lambda folder: bobs_corpus(copy_of(folder)),
    "her upload": lambda folder: find_upload(next((folder.parent / ".uploads").iterdir()).name),
    "her upload by its path": lambda folder: bobs_corpus(next((folder.parent / ".uploads").glob("*/*.tsv"))),
}
READS = LOOKS | TAKES | FILES
CHANGES = {
    "start": run_folder.start,
    "resume": run_folder.resume,
    "pause": run_folder.pause,
    "stop": run_folder.stop,
    "rename": lambda name: rename(name, "mine-now"),
    "note": lambda name: set_note(name, "I was here"),
    "keep": keep,
    "share": share,
    "withdraw": unshare,
    "delete": run_folder.delete,
}


def content_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("person", [BOB, NOBODY], ids=["another visitor", "nobody"])
def test_nobody_else_reaches_a_run_or_file_in_any_way(hers, person):
    before = content_of(hers)
    with acting_as(person):
        for way, look in READS.items():
            with pytest.raises((RunError, CheckpointError, CorpusError, CapsuleError)) as refused:
                pytest.fail(f"reached {way}: {look(hers)}")
            assert "secret" not in str(refused.value), way
        for way, change in CHANGES.items():
            with pytest.raises(RunError, match="there is no run 'private-lessons'; the runs here are: none"):
                pytest.fail(f"could {way}: {change(HERS)}")
        assert list_runs() == [] and list_uploads() == ()
        assert HERS not in {found.name for found in list_checkpoints()}
    assert content_of(hers) == before


@pytest.mark.parametrize("person", [ADA, TEACHER, operator()], ids=["owner", "teacher", "operator"])
def test_the_owner_a_teacher_and_the_operator_may_do_everything(hers, person):
    with acting_as(person):
        assert [run.id for run in list_runs()] == [HERS]
        for look in (LOOKS | TAKES).values():
            look(hers)
        assert about(hers).note and get_run(HERS).settings.pinned
        find_upload(list_uploads()[0].key)
        set_note(HERS, "changed")
        rename(HERS, "another-name")
        assert renamed(HERS) == "another-name"
        rename("another-name", HERS)
        write_status(hers, Status(state="paused"))
        run_folder.resume(HERS)
        run_folder.stop(HERS)
    assert about(hers).note == "changed" and owner_of(hers) == "ada", "whoever resumes it, it stays hers"
    write_status(hers, Status(state="finished"))


def test_who_has_a_link_or_sees_a_pinned_run_looks_at_it_and_neither_takes_nor_changes_anything(hers):
    guest = Person(id="bob", shares=frozenset({"a-token"}))
    for audience, person in (({"token": "a-token"}, guest), ({"pinned": True}, BOB), ({"pinned": True}, NOBODY)):
        write_json(hers / "audience.json", audience)
        with acting_as(person):
            for look in LOOKS.values():
                look(hers)
            for way, take in (TAKES | FILES).items():
                with pytest.raises((RunError, CorpusError, CapsuleError)) as refused:
                    pytest.fail(f"took {way}: {take(hers)}")
                assert re.search("belongs to somebody else|is not here", str(refused.value)), way
            for change in CHANGES.values():
                with pytest.raises(RunError, match="belongs to somebody else: you may look at it, but not change it"):
                    change(HERS)
            assert about(hers).note == "" and get_run(HERS).settings.pinned == ()
            assert [run.settings.pinned for run in list_runs()] == [()] and list_uploads() == ()
    write_json(hers / "audience.json", {"token": "a-token"})
    (hers / "audience.json").unlink()
    with acting_as(guest), pytest.raises(RunError, match="there is no run"):
        get_run(HERS)


def test_a_run_is_its_makers_from_the_first_moment_and_so_is_a_sweep_and_an_archive(hers, tmp_path, monkeypatch):
    file = BytesIO()
    write_archive(HERS, file, with_corpus=True)
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    with acting_as(BOB):
        made = create_run(MODEL, settings(), CorpusConfig(name="reverse"))
        brought = load_archive(file)
        sweep = create_sweep(
            Base(model=MODEL, train=settings(), corpus=CorpusConfig(name="reverse")), "n_heads", ["1", "2"]
        )
    assert (tmp_path / brought / "corpus" / "hers.tsv").read_bytes() == PAIRS
    assert {owner_of(tmp_path / name) for name in (made, brought, sweep.parts[0].run.id)} == {"bob"}
    with acting_as(ADA):
        assert list_runs() == [] and sweeps_of(list_runs()) == ()
        for act in (start_sweep, cancel_sweep):
            with pytest.raises(RunError, match="there is no run"):
                act(sweep)


def test_threads_and_late_calls_work_for_nobody_unless_the_person_is_handed_on(hers):
    identify_by(lambda: NOBODY)
    try:
        assert list_runs() == []
        with acting_as(ADA):
            later = for_this_person(list_runs)
        assert [run.id for run in later()] == [HERS]
        assert queue.place(HERS) == 0 and queue.start_waiting() == [], "the queue serves everybody"
    finally:
        identify_by(operator)


def test_an_experiments_results_are_whose_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    files = {}
    for person in (ADA, BOB, operator()):
        with acting_as(person):
            files[person.id] = own_file("heads", "quick")
    assert len(set(files.values())) == 3
    monkeypatch.setenv(PERSON, "ada")
    assert own_file("heads", "quick") == files["ada"], "the process that measures for her writes where she looks"
