"""Runs: the folder tells the truth about the trainer, whatever happens to it, and nothing is lost but unsaved steps."""

import json
import signal
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from tiny_runs import MODEL, create, losses, settings

from transformer.checkpoints.settings import read_settings, write_settings
from transformer.checkpoints.store import find_checkpoint, history, load_checkpoint
from transformer.config import CorpusConfig
from transformer.data.corpora import CorpusError
from transformer.files import append_rows, read_rows, write_json
from transformer.runs import run_folder
from transformer.runs.status import REQUEST_FILE, RunError, status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run
from transformer.text.tokenizer import TokenizerError
from transformer.training.events import Evaluated, Finished, StepDone

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("room")]


def test_a_new_run_is_a_folder_that_waits_and_takes_the_tokenizers_vocabulary(room):
    run_id = create(command="train it")
    assert run_id == "reverse-1"
    folder = room / run_id
    assert {path.name for path in folder.iterdir()} == {"config.json", "tokenizer.json", "status.json", "corpus"}
    made = read_settings(folder)
    assert made.model.vocab_size == 24
    assert (made.command, made.resolved, made.train.seed) == ("train it", None, 0)
    assert made.versions["torch"] == torch.__version__ or made.versions["torch"] in torch.__version__
    assert status(run_id).state == "queued"
    assert not status(run_id).active
    assert json.loads((folder / "corpus" / "generator.json").read_text()) == {"name": "reverse", "seed": 0}


def test_names_become_ids_and_are_never_taken_twice():
    assert [create(), create()] == ["reverse-1", "reverse-2"]
    assert [create(name="Léa's run!"), create(name="Léa's run!")] == ["L-a-s-run", "L-a-s-run-2"]
    assert create(name="../..") == "run"


def test_a_shipped_checkpoints_name_is_not_given_to_a_run(monkeypatch, tmp_path):
    monkeypatch.setattr("transformer.checkpoints.settings.SHIPPED_FOLDER", tmp_path / "checkpoints")
    (tmp_path / "checkpoints" / "reverse").mkdir(parents=True)
    assert create(name="reverse") == "reverse-2"


def test_pinned_sentences_default_to_the_corpus_examples_and_are_checked(room):
    assert len(read_settings(room / create()).pinned) == 3
    assert read_settings(room / create(pinned=["a b", " a b ", "c"])).pinned == ("a b", "c")
    with pytest.raises(RunError, match="a pinned sentence is empty"):
        create(pinned=["  "])
    with pytest.raises(RunError, match=r"the pinned sentence 'a a a .* has 41 tokens; the model takes 32"):
        create(pinned=["a " * 40])


@pytest.mark.parametrize(
    ("corpus", "error"),
    [
        (CorpusConfig(name="nothing"), CorpusError),
        (CorpusConfig(name="/nowhere/pairs.tsv"), CorpusError),
        (CorpusConfig(name="reverse", tokenizer="bpe", vocab_size=50_000), TokenizerError),
    ],
)
def test_what_cannot_work_is_refused_at_once_and_leaves_nothing(room, corpus, error):
    with pytest.raises(error):
        run_folder.create_run(MODEL, settings(), corpus)
    assert not room.exists() or list(room.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "file" / "runs"))
    with pytest.raises(RunError, match="the run cannot be written to"):
        create()


def test_a_run_writes_everything_that_a_watcher_reads(room):
    run_id = create(pinned=["a b c"])
    seen = []
    ended = train_run(run_id, seen.append)
    assert (ended.state, ended.reason, ended.step, ended.error) == ("finished", "max_steps", 20, "")
    assert status(run_id) == ended
    assert [type(event) for event in seen[:1] + seen[-1:]] == [StepDone, Finished]

    rows = run_folder.metrics(run_id)
    assert [row["step"] for row in rows if row["split"] == "train"] == list(range(1, 21))
    assert [row["step"] for row in rows if row["split"] == "validation"] == [10, 20]
    assert [(row["step"], row["count"]) for row in rows if row["split"] == "random"] == [(20, 10)]
    assert {"loss", "learning_rate", "gradient_norm", "tokens", "tokens_per_s", "elapsed_s"} <= rows[0].keys()
    evaluated = next(row for row in rows if row["split"] == "validation")
    assert {"loss", "perplexity", "exact_match", "bleu", "chrf", "count", "elapsed_s"} <= evaluated.keys()

    assert [(row["step"], row["source"]) for row in run_folder.samples(run_id)] == [(10, "a b c"), (20, "a b c")]
    assert list(run_folder.snapshots(run_id)) == [0, 1, 2, 4, 8, 16, 19]
    assert read_settings(room / run_id).resolved.threads == 1


def test_a_finished_run_loads_like_a_checkpoint_and_so_do_its_snapshots():
    run_id = create()
    train_run(run_id)
    loaded = load_checkpoint(find_checkpoint(run_id))
    assert (loaded.name, loaded.step) == (run_id, 20)
    assert len(history(loaded.folder)) == len(run_folder.metrics(run_id))
    early = load_checkpoint(loaded.folder, weights=run_folder.snapshots(run_id)[4])
    assert early.step == 4
    assert not torch.equal(early.model.projection.weight, loaded.model.projection.weight)


def test_the_card_says_how_it_was_made_and_what_it_reaches():
    run_id = create(command="python -m transformer train --and so on")
    train_run(run_id)
    card = load_checkpoint(find_checkpoint(run_id)).card
    assert card.startswith(f"# {run_id}\n")
    assert "python -m transformer train --and so on" in card
    random = next(row for row in run_folder.metrics(run_id) if row["split"] == "random")
    assert f"| random (step 20) | 10 | {random['exact_match']:.4f} | {random['perplexity']:.3f} |" in card


def test_the_model_can_be_looked_into_while_it_trains():
    run_id, found = create(), []

    def look(event):
        if isinstance(event, StepDone) and event.step == 1:
            found.append(load_checkpoint(find_checkpoint(run_id)).step)

    train_run(run_id, look)
    assert found == [1]


@pytest.mark.parametrize("at", [5, 10, 20])
def test_pausing_and_resuming_changes_no_loss_by_a_bit(at):
    whole, parted = create(max_steps=30), create(max_steps=30)
    train_run(whole)

    def pause(event):
        if isinstance(event, StepDone) and event.step == at:
            run_folder.pause(parted)

    paused = train_run(parted, pause)
    assert (paused.state, paused.step) == ("paused", at)
    assert run_folder.get_run(parted).resumable and not (folder_of(parted) / REQUEST_FILE).exists()
    assert train_run(parted).state == "finished"
    assert losses(parted) == losses(whole)
    first, second = (load_file(folder_of(run_id) / "weights.safetensors") for run_id in (whole, parted))
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_stopping_leaves_usable_weights_and_a_card_and_can_be_taken_back():
    run_id = create(max_steps=30)
    stopped = train_run(
        run_id, lambda event: run_folder.stop(run_id) if event.step == 12 and _asks_once(run_id) else None
    )
    assert (stopped.state, stopped.reason, stopped.step) == ("stopped", "asked", 12)
    loaded = load_checkpoint(find_checkpoint(run_id))
    assert loaded.step == 12
    assert "stopped before it was scored on held-out pairs" in loaded.card
    assert train_run(run_id).state == "finished"


def _asks_once(run_id):
    return not (folder_of(run_id) / REQUEST_FILE).exists()


def test_a_request_to_a_trainer_that_died_is_none_to_the_next():
    run_id = create()
    write_json(folder_of(run_id) / REQUEST_FILE, {"request": "stop"})
    assert run_folder.get_run(run_id).asked is None
    assert train_run(run_id).state == "finished"


def test_a_paused_run_can_be_stopped_where_it_is():
    run_id = create()
    train_run(run_id, lambda event: run_folder.pause(run_id) if event.step == 3 else None)
    run_folder.stop(run_id)
    assert (status(run_id).state, status(run_id).step) == ("stopped", 3)


@pytest.fixture
def interruptible():
    """Interrupts are taken, also where the tests were started in the background of a shell, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_pauses(interruptible):
    run_id = create()
    ended = train_run(run_id, lambda event: signal.raise_signal(signal.SIGINT) if event.step == 4 else None)
    assert (ended.state, ended.step) == ("paused", 4)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_that_has_ended_is_neither_started_nor_asked_again():
    run_id = create()
    train_run(run_id)
    with pytest.raises(RunError, match=r"reverse-1 has finished \(max_steps\); start a new run to train longer"):
        run_folder.start(run_id)
    with pytest.raises(RunError, match="reverse-1 cannot pause: it is finished"):
        run_folder.pause(run_id)


def test_a_half_written_row_is_left_out_and_a_repeated_step_counts_once(room):
    run_id = create()
    rows = ['{"split": "train", "step": 1, "loss": 3}', '{"split": "train", "step": 2, "loss": 2}']
    rows += ['{"split": "validation", "step": 2, "loss": 9}', '{"split": "tra{"split": "train", "step": 3, "loss": 1}']
    (room / run_id / "metrics.jsonl").write_text("\n".join([*rows, rows[0].replace("3}", "4}"), '{"split": "tr']))
    assert losses(run_id) == [("train", 1, 4), ("train", 2, 2), ("validation", 2, 9)]


def test_a_row_appended_after_a_crash_does_not_join_the_broken_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"step": 1}\n{"ste')
    append_rows(path, [{"step": 2}])
    assert [row["step"] for row in read_rows(path)] == [1, 2]


@pytest.mark.parametrize("run_id", ["nothing", "../runs", "", "a/b", ".."])
def test_an_unknown_run_is_refused_with_those_that_exist(run_id):
    create()
    with pytest.raises(RunError, match=r"there is no run .*; the runs here are: reverse-1"):
        status(run_id)


def test_runs_are_listed_newest_first_and_a_damaged_one_is_passed_over(room):
    first, second = create(name="first"), create(name="second")
    for run_id, year in ((first, "2024"), (second, "2025")):
        write_settings(room / run_id, replace(read_settings(room / run_id), created=f"{year}-01-01T00:00:00+00:00"))
    (room / create(name="third") / "config.json").write_text("{")
    assert [run.id for run in run_folder.list_runs()] == ["second", "first"]
    assert not run_folder.list_runs()[0].loadable


def test_a_status_that_cannot_be_read_is_a_failure_and_no_crash(room):
    run_id = create()
    (room / run_id / "status.json").write_text('{"step": ')
    assert status(run_id).state == "failed"


def test_a_deleted_run_is_gone():
    run_id = create()
    run_folder.delete(run_id)
    assert run_folder.list_runs() == []


def test_evaluations_are_seen_by_progress():
    seen = []
    train_run(create(), seen.append)
    assert [event.step for event in seen if isinstance(event, Evaluated)] == [10, 20]
