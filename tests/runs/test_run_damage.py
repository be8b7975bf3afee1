"""One damaged run: what its files cannot say is said in a sentence, and the runs beside it go on."""

import json

import pytest
from films import opened
from page_models import texts
from page_train import pairs
from tiny_runs import create

from transformer.access.known_people import person_called, remember, take_share
from transformer.analysis.training.progress import progress_of, samples_of
from transformer.checkpoints.store import history
from transformer.data.uploads import save_upload
from transformer.experiments.study import is_active
from transformer.files import read_json, read_rows
from transformer.runs import queue, run_folder, upkeep
from transformer.runs.limits.quota import spent_s

DAMAGED = [
    {"state": "running", "pid": "abc"},
    {"state": "running", "pid": 2**70, "create_time": 1.0},
    {"state": "running", "pid": -5},
    {"state": "running", "pid": True},
    {"state": "running", "pid": 3, "create_time": "yesterday"},
    {"state": "nonsense"},
    {"state": ["queued"]},
    {"state": "queued", "phase": 3},
    {"state": "paused", "step": "many"},
    {"state": "paused", "elapsed_s": float("nan")},
    {"state": "paused", "heartbeat": None},
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_status_fails_one_run_and_no_list(room, content, monkeypatch):
    monkeypatch.setattr("transformer.runs.launch.WARM.keep", lambda: None)
    good, bad, waits = create(), create(), create()
    (room / bad / "status.json").write_text(json.dumps(content))
    found = {run.id: run.status for run in run_folder.list_runs()}
    assert found[good].state == "queued" and found[bad].state == "failed"
    assert found[bad].error.startswith("status.json is damaged: its ")
    started = []
    monkeypatch.setattr(queue, "_start", lambda root, waiting: started.append(waiting.run_id))
    queue.enqueue(waits)
    upkeep.do_upkeep()
    assert started == [waits]


def test_upkeep_survives_what_it_does_not_know(room, monkeypatch, caplog):
    def fail():
        raise KeyError("something")

    monkeypatch.setattr("transformer.runs.launch.WARM.keep", fail)
    upkeep.do_upkeep()
    assert "the queue could not be served" in caplog.text


def test_rows_of_another_shape_are_left_out(room):
    run_id = create()
    good = {"split": "train", "step": 1, "loss": 2.0, "elapsed_s": 0.1}
    odd = [
        {"split": "train"},
        {"split": ["train"], "step": 1},
        {"split": "train", "step": "2"},
        {"split": "train", "step": None},
        {"split": "validation", "step": 2, "loss": "low"},
        {"split": "validation", "step": 2, "loss": [1]},
        {"split": "random", "step": 2, "exact_match": 10**400},
    ]
    folder = room / run_id
    lines = "".join(json.dumps(row) + "\n" for row in (*odd, good))
    (folder / "metrics.jsonl").write_text(lines + "[" * 100_000 + "\n")
    sample = {"step": 1, "source": "a b", "translation": "b a", "elapsed_s": 0.1}
    odd = [{}, sample | {"source": ["a"]}, sample | {"step": "1"}, sample | {"translation": None}]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*odd, sample)))
    assert run_folder.metrics(run_id) == list(history(folder)) == [good]
    assert run_folder.samples(run_id) == [sample]
    assert progress_of(folder).last("train", "loss") == 2.0
    assert [found.translation for found in samples_of(folder)["a b"]] == ["b a"]


@pytest.mark.parametrize("content", ["{", '{"version": 1, "kind": "words", "entries": [1]}', "[" * 100_000, "\udcff"])
def test_the_timeline_says_that_the_tokenizer_is_damaged(own_film_run, room, content):
    path = room / own_film_run / "tokenizer.json"
    assert path.is_file()
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    said = texts(opened(own_film_run))
    assert "The tokenizer in" in said


def test_what_no_float_and_no_utf8_holds_is_not_read(tmp_path):
    path = tmp_path / "about.json"
    path.write_text(f'{{"note": {10**400}}}')
    assert read_json(path) == {}
    path.write_text('{"note": "\\ud83d\\ude00 \\ud800"}')
    assert read_json(path) == {"note": "😀 ?"}
    path.write_text(f'{{"step": 1}}\n{{"step": {10**400}}}\n')
    assert read_rows(path) == [{"step": 1}]


@pytest.mark.parametrize("shares", [None, 3, "token", {"a": 1}, [["a"]], [{}], ["", 3, None]])
def test_a_person_whose_file_is_damaged_is_let_in_and_can_follow_links(room, shares):
    remember("ada", shares=shares)
    assert all(isinstance(share, str) for share in person_called("ada").shares)
    take_share("ada", "token")
    assert "token" in person_called("ada").shares


@pytest.mark.parametrize("row", [{}, {"seconds": 3}, {"seconds": "3", "time": 1e12}, {"seconds": 3, "time": None}])
def test_a_damaged_book_of_spent_time_counts_what_can_be_read(room, row):
    room.mkdir()
    good = {"owner": "ada", "seconds": 5.0, "time": 1e12}
    (room / ".spent.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (row | {"owner": "ada"}, good)))
    assert spent_s("ada") == 5.0


def test_a_damaged_list_of_owners_takes_another(room):
    path = save_upload("pairs.tsv", pairs(60))
    (path.parent / ".owners.jsonl").write_text('{"owner": ["ada"]}\n{}\n')
    assert save_upload("pairs.tsv", pairs(60)) == path


@pytest.mark.parametrize("pid", ["3", -5, True, 2**70, 1.5, [3]])
def test_a_study_with_a_damaged_worker_is_at_rest(room, pid):
    (room / "mine").mkdir(parents=True)
    (room / "mine" / "study.json").write_text("{}")
    (room / "mine" / "worker.json").write_text(json.dumps({"pid": pid}))
    assert not is_active("mine")
