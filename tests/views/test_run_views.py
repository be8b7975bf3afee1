"""The checks of runs and plans notice a tampered file, and measure a sample where time is short."""

import gzip
import json
import os

import numpy as np
import pytest
from films import STEPS, TEXT
from page_runs import PINNED, made_run, trained_run
from page_train import pairs
from view_examples import checks_of, data_of

from transformer.analysis.training import run_checks
from transformer.analysis.training.plan_checks import check_file, check_schedule
from transformer.checkpoints.settings import METRICS_FILE, WEIGHTS_FILE, read_settings
from transformer.config import CorpusConfig, TrainConfig
from transformer.data.corpora import file_corpus
from transformer.data.pair_files import read_pairs
from transformer.data.statistics import corpus_stats
from transformer.data.uploads import save_upload
from transformer.runs import run_folder, sweeps
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run
from transformer.training.schedule import learning_rate
from transformer.views.subjects import Runs, Text
from transformer.views.training.plan import REPORTED, SentenceLengths
from transformer.views.training.runs import ComparedRuns, RunCurves, SweepChart
from transformer.views.training.timeline import AtStep, SnapshotAttention, decode_snapshot

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("room", "no_shipped")]
PANELS = ("loss", "perplexity", "learning rate", "exact match")
ODD = b'"Salut"  tout le monde\tHi\n\nx\t\t\n' + b"y" * 501 + b"\tlong\nno second side\n"


def folders(*names):
    return Runs(tuple(folder_of(name) for name in names))


def verdicts(view, subject, data=None):
    """The claims that hold and those that do not."""
    found = tuple(checks_of(view, subject, data_of(view, subject) if data is None else data))
    return [c.claim for c in found if c.holds], [c.claim for c in found if not c.holds]


def tamper(run_id, change, split="validation"):
    """Changes the last row of a split in the metrics of a run."""
    path = folder_of(run_id) / METRICS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    row = [row for row in rows if row["split"] == split][-1]
    row.update(change(row))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("split", "change", "count"),
    [
        ("validation", lambda row: {"loss": row["loss"] - 0.1}, 2),
        ("validation", lambda row: {"exact_match": row["exact_match"] + 0.2}, 1),
        ("validation", lambda row: {"perplexity": row["perplexity"] * 0.9}, 1),
        ("train", lambda row: {"learning_rate": row["learning_rate"] * 1.5}, 1),
    ],
)
def test_tampered_metrics_turn_a_check_red(split, change, count):
    run_id = trained_run()
    view = RunCurves(panels=PANELS)
    assert [len(found) for found in verdicts(view, folders(run_id))] == [5 + 2 + 2, 0]
    tamper(run_id, change, split)
    assert len(verdicts(view, folders(run_id))[1]) == count


def test_a_point_that_is_missing_turns_a_check_red():
    subject, view = folders(trained_run()), RunCurves()
    data = data_of(view, subject)
    first, *others = data.curves
    short = type(first)(first.name, first.x[1:], first.y[1:])
    assert len(verdicts(view, subject, type(data)((short, *others)))[1]) == 1


def test_a_sample_stands_for_pairs_that_take_too_long(monkeypatch):
    monkeypatch.setattr(run_checks, "CHUNK", 4)
    monkeypatch.setattr(run_checks, "BUDGET_S", 0.0)
    run_id = trained_run()
    checks = tuple(checks_of(RunCurves(), folders(run_id), data_of(RunCurves(), folders(run_id))))
    assert all(check.holds for check in checks) and "4 of 10 pairs" in checks[-1].how
    tamper(run_id, lambda row: {"loss": 0.01, "exact_match": 1.0})
    assert len(verdicts(RunCurves(), folders(run_id))[1]) == 2


def test_weights_that_no_evaluation_saw_are_not_measured():
    run_id = trained_run()
    (folder_of(run_id) / WEIGHTS_FILE).unlink()
    holds, fails = verdicts(RunCurves(), folders(run_id))
    assert len(holds) == 4 and not fails and "Nothing is claimed" in holds[-1]


def test_each_of_several_runs_is_evaluated_again():
    first, second = trained_run("first"), trained_run("second", seed=1)
    view = ComparedRuns(quantity="exact match", against="elapsed_s")
    assert [len(found) for found in verdicts(view, folders(first, second))] == [2 + 4, 0]
    tamper(second, lambda row: {"exact_match": row["exact_match"] + 0.5})
    assert len(verdicts(view, folders(first, second))[1]) == 1


def test_a_sweep_shows_what_its_runs_reached():
    settings = read_settings(folder_of(made_run("base")))
    base = sweeps.Base(model=settings.model, train=settings.train, corpus=settings.corpus, pinned=PINNED)
    sweep = sweeps.create_sweep(base, "train.label_smoothing", ["0", "0.2"])
    for part in sweep.parts:
        train_run(part.run.id)
    view, subject = SweepChart(setting=sweep.setting), folders(*(part.run.id for part in sweep.parts))
    assert data_of(view, subject).values == (0, 0.2)
    assert [len(found) for found in verdicts(view, subject)] == [1 + 1 + 2 * 2 + 4, 0]
    tamper(sweep.parts[1].run.id, lambda row: {"loss": row["loss"] + 0.1})
    assert len(verdicts(view, subject)[1]) == 1


@pytest.mark.parametrize("kind", ["paper", "constant", "cosine", "wsd"])
def test_the_reference_schedule_is_the_schedule(kind):
    for warmup in (0, 1, 10):
        train = TrainConfig(schedule=kind, warmup_steps=warmup, learning_rate=0.01, max_steps=50)
        rates = [learning_rate(s, kind=kind, peak=0.01, warmup_steps=warmup, max_steps=50) for s in range(1, 60)]
        shown = np.array(rates)
        assert check_schedule(np.arange(1, 60), shown, train).holds
        assert not check_schedule(np.arange(1, 60), shown + np.eye(59)[7] * 1e-4, train).holds


def test_an_uploaded_file_is_counted_again():
    path = save_upload("my pairs.tsv", pairs(300) + pairs(2) + ODD)
    view, subject = SentenceLengths(), Text(CorpusConfig(name=str(path)))
    holds, fails = verdicts(view, subject)
    assert not fails and {"Rows read, used and dropped", "Pairs in each split of the file"} <= set(holds)
    data = data_of(view, subject)
    assert dict(zip(REPORTED, data.rows.tolist(), strict=True))["duplicate"] == 2
    data.rows[-1] += 1
    assert len(verdicts(view, subject, data)[1]) == 1
    assert str(path.parent) not in "".join(subject.origin.lines), "its place on this machine is nobody's business"


@pytest.mark.parametrize("end", ["tsv", "tsv.gz", "csv", "jsonl"])
def test_every_kind_of_file_is_counted_alike(tmp_path, end):
    content = pairs(300) + pairs(2) + ODD
    rows = [line.split("\t") for line in content.decode().split("\n") if line]
    if end == "csv":
        content = "".join(f"{';'.join(cells[:2])}\n" for cells in rows).encode().replace(b'"', b"")
    elif end == "jsonl":
        content = "".join(f"{json.dumps(cells)}\n" for cells in rows).encode()
    path = tmp_path / f"file.{end}"
    path.write_bytes(gzip.compress(content) if end.endswith("gz") else content)
    stats = corpus_stats(file_corpus(path))
    assert stats.report is not None
    report = dict.fromkeys(REPORTED, 0) | {"read": stats.report.read, "kept": stats.report.kept, **stats.report.dropped}
    assert [check.holds for check in check_file(read_pairs(path), stats.sizes, report)] == [True, True]
    assert read_pairs(path).clean()[1].dropped["duplicate"] == 2


def test_weights_that_were_exchanged_turn_a_check_red(own_film_run):
    folder, kept = folder_of(own_film_run), run_folder.snapshots(own_film_run)
    subject = AtStep(decode_snapshot(folder, kept[8].relative_to(folder).as_posix(), TEXT))
    view = SnapshotAttention(kind="decoder_self", head=1)
    assert subject.snapshot.step == 8 and 8 in STEPS and not verdicts(view, subject)[1]
    stat = kept[8].stat()
    kept[8].write_bytes(kept[1].read_bytes())
    os.utime(kept[8], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert len(verdicts(view, subject)[1]) >= 3
