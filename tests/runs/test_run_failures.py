"""What goes wrong with a run is one sentence in its folder, and the last good state stays."""

import errno
import os
import resource
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from tiny_runs import MODEL, create, losses, settings

from transformer.checkpoints.settings import read_settings, write_settings
from transformer.config import CorpusConfig
from transformer.runs import run_folder, status, trainer
from transformer.runs.status import STATE_FILE, Status, write_status
from transformer.runs.status import status as status_of
from transformer.runs.worker import train_run
from transformer.training.events import Evaluated, StepDone
from transformer.training.loop import train_steps

pytestmark = pytest.mark.usefixtures("room")


def test_a_failure_is_one_sentence_and_its_traceback_goes_to_the_log(room, capfd):
    def fail(event):
        if event.step == 17:
            raise KeyError("wires")

    run_id = create(max_steps=30)
    failed = train_run(run_id, fail)
    assert (failed.state, failed.step) == ("failed", 16)
    assert failed.error == "the trainer broke off with KeyError: 'wires'; log.txt in its folder has the details"
    assert status_of(run_id) == failed
    assert "in fail" in (room / run_id / "log.txt").read_text()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full: free some space, then resume"),
        (MemoryError(), "memory ran out: lower batch_tokens or the model's sizes"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "memory ran out: lower batch_tokens"),
        (PermissionError(errno.EACCES, "Permission denied"), "a file could not be read or written:"),
    ],
)
def test_what_the_machine_refuses_is_said_with_the_way_out(monkeypatch, error, sentence):
    def refuse(*_):
        raise error

    run_id = create()
    monkeypatch.setattr(status, "append_rows", refuse)
    ended = train_run(run_id)
    assert ended.state == "failed"
    assert sentence in ended.error
    assert run_folder.get_run(run_id).resumable


def test_a_failed_run_goes_on_from_its_last_state():
    whole, broken = create(max_steps=30), create(max_steps=30)
    train_run(whole)

    def fail(event):
        if isinstance(event, StepDone) and event.step == 17:
            raise ConnectionError("no reason")

    assert train_run(broken, fail).state == "failed"
    assert train_run(broken).state == "finished"
    assert losses(broken) == losses(whole)


def test_a_corpus_that_vanished_fails_with_its_path(room):
    run_id = create()
    made = read_settings(room / run_id)
    write_settings(room / run_id, replace(made, corpus=CorpusConfig(name="/gone/pairs.tsv")))
    assert "there is no file /gone/pairs.tsv" in train_run(run_id).error


def test_a_full_disk_is_said_and_the_last_good_state_stays(room):
    whole, full = create(max_steps=30), paused_at_5(max_steps=30)
    train_run(whole)
    before = (room / full / STATE_FILE).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # a status fits, weights do not
    try:
        ended = train_run(full)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (ended.state, ended.error) == (
        "failed",
        "the disk is full: free some space, then resume from the last saved state",
    )
    assert status_of(full) == ended
    assert (room / full / STATE_FILE).read_bytes() == before
    assert not list((room / full).rglob("*.tmp"))
    assert train_run(full).state == "finished"
    assert losses(full) == losses(whole)


def test_a_disk_too_full_for_a_last_word_is_told_from_a_kill(room, monkeypatch):
    run_id = create()
    write_status(room / run_id, Status(state="running", pid=2**22 - 1, create_time=1.0))
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    assert status_of(run_id).error.startswith("the disk is full: free some space, then resume")


def test_memory_that_runs_out_is_said_and_the_last_good_state_stays():
    whole, short = create(max_steps=30), create(max_steps=30)
    train_run(whole)
    ended = train_run(short, lambda event: torch.empty(2**50) if event.step == 17 else None)
    assert ended.state == "failed"
    assert ended.error.startswith("memory ran out: lower batch_tokens or the model's sizes (")
    assert train_run(short).state == "finished"
    assert losses(short) == losses(whole)


def test_a_corpus_that_vanishes_between_two_parts_of_a_run_costs_nothing_but_the_wait(room, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{i} {i % 7}\t{i % 7} {i}\n" for i in range(300)))
    train, corpus = settings(max_steps=12, evaluate_every=6), CorpusConfig(name=str(path), tokenizer="words")
    whole, parted = (run_folder.create_run(MODEL, train, corpus) for _ in range(2))
    train_run(whole)
    assert train_run(parted, lambda event: run_folder.pause(parted) if event.step == 5 else None).state == "paused"
    own = room / parted / "corpus" / "pairs.tsv"
    own.rename(tmp_path / "hidden.tsv")
    gone = train_run(parted)
    assert (gone.state, gone.step) == ("failed", 5)
    assert "pairs.tsv" in gone.error
    (tmp_path / "hidden.tsv").rename(own)
    assert train_run(parted).state == "finished"
    assert losses(parted) == losses(whole)


def test_weights_that_are_not_finite_are_never_saved(room, monkeypatch):
    run_id = paused_at_5(max_steps=30)
    folder = room / run_id

    def poisoned(state, *arguments, **options):
        for event in train_steps(state, *arguments, **options):
            if isinstance(event, Evaluated):
                with torch.no_grad():
                    state.model.projection.weight[0, 0] = torch.inf
            yield event

    monkeypatch.setattr(trainer, "train_steps", poisoned)
    ended = train_run(run_id)
    assert ended.state == "failed"
    assert "is no longer a finite number at step 10: lower the learning rate" in ended.error
    for name in (STATE_FILE, "weights.safetensors"):
        kept = load_file(folder / name)
        assert all(value.isfinite().all() for value in kept.values() if value.is_floating_point())


def test_what_a_killed_trainer_left_half_written_is_removed_but_not_what_is_being_written(room):
    run_id = create()
    old, new = room / run_id / ".weights.safetensors.a.tmp", room / run_id / ".request.json.b.tmp"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (0, 0))
    train_run(run_id)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_run_goes_on_by_a_step_where_an_evaluation_was_due_when_it_paused(room):
    run_id = paused_at_5(max_steps=30, evaluate_every=5)
    assert train_run(run_id, lambda event: run_folder.pause(run_id)).state == "paused"
    assert run_folder.get_run(run_id).status.step == 6


def paused_at_5(**changes):
    run_id = create(**changes)
    assert train_run(run_id, lambda event: run_folder.pause(run_id) if event.step == 5 else None).state == "paused"
    return run_id


def test_a_loss_that_is_not_finite_fails_with_advice(room):
    run_id = create(weight_decay=1e30, clip_norm=0.0, max_steps=200)
    ended = train_run(run_id)
    assert ended.state == "failed"
    assert "is no longer a finite number at step" in ended.error
