"""Every figure of Train and Runs has its badge, which a tampered journal or a wrong number turns red."""

import json

import numpy as np
import pytest
from page_checks import proved, verdicts
from page_models import texts
from page_runs import PINNED, made_run, trained_run

from pages.training.data import Progress
from transformer.analysis.training import run_checks
from transformer.analysis.training.plan_checks import check_schedule
from transformer.checkpoints.settings import METRICS_FILE, WEIGHTS_FILE, read_settings
from transformer.config import TrainConfig
from transformer.figures.training.curves import Curve
from transformer.runs import run_folder, sweeps
from transformer.runs.worker import train_run
from transformer.training.schedule import learning_rate

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("room", "no_shipped")]
CURVES = ["loss", "perplexity", "learning rate"]


def tamper(run_id, change, split="validation"):
    """Changes the last row of a split in the journal of a run."""
    path = run_folder.run_folder(run_id) / METRICS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    row = [row for row in rows if row["split"] == split][-1]
    row.update(change(row))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_curves_of_a_run_are_those_of_its_run_log_and_its_weights():
    at = proved("train", "proof-curve", run=trained_run(), curve=[*CURVES, "exact match"])
    assert verdicts(at) == (5 + 2 + 2, 0), texts(at)
    assert "All 10 pairs read again" in texts(at)


@pytest.mark.parametrize(
    ("split", "change", "count"),
    [
        ("validation", lambda row: {"loss": row["loss"] - 0.1}, 2),
        ("validation", lambda row: {"exact_match": row["exact_match"] + 0.2}, 1),
        ("validation", lambda row: {"perplexity": row["perplexity"] * 0.9}, 1),
        ("train", lambda row: {"learning_rate": row["learning_rate"] * 1.5}, 1),
    ],
)
def test_a_tampered_run_log_turns_the_badge_of_its_curves_red(split, change, count):
    run_id = trained_run()
    tamper(run_id, change, split)
    at = proved("train", "proof-curve", run=run_id, curve=CURVES)
    assert verdicts(at)[1] == count, texts(at)


@pytest.mark.parametrize("wrong", [lambda c: Curve(c.name, c.x, c.y * 1.01), lambda c: Curve(c.name, c.x[1:], c.y[1:])])
def test_a_point_that_is_wrong_or_missing_turns_it_red(wrong, monkeypatch):
    honest = Progress.curve
    monkeypatch.setattr(Progress, "curve", lambda *a: wrong(honest(*a)) if a[2] == "loss" else honest(*a))
    at = proved("train", "proof-curve", run=trained_run(), curve=["loss", "gradient norm"])
    assert verdicts(at) == (1 + 2, 2), texts(at)


def test_a_sample_stands_for_pairs_that_take_too_long(monkeypatch):
    monkeypatch.setattr(run_checks, "CHUNK", 4)
    monkeypatch.setattr("pages.training.run_checks.BUDGET_S", 0.0)
    run_id = trained_run()
    at = proved("train", "proof-curve", run=run_id)
    assert verdicts(at) == (3 + 2, 0) and "4 of 10 pairs" in texts(at), texts(at)
    tamper(run_id, lambda row: {"loss": 0.01, "exact_match": 1.0})
    assert verdicts(proved("train", "proof-curve", run=run_id)) == (3 + 0, 2)


def test_weights_that_no_evaluation_saw_are_not_measured():
    run_id = trained_run()
    (run_folder.run_folder(run_id) / WEIGHTS_FILE).unlink()
    at = proved("train", "proof-curve", run=run_id)
    assert verdicts(at) == (3, 0) and "so none is made again" in texts(at)


def test_runs_laid_over_each_other_are_those_of_their_journals():
    first, second = trained_run("first"), trained_run("second", seed=1)
    for more in ({}, {"quantity": "exact match", "against": "seconds"}):
        at = proved("runs", "proof-overlay", show=[first, second], run=first, **more)
        assert verdicts(at) == (2 + 4, 0), texts(at)
    tamper(second, lambda row: {"exact_match": row["exact_match"] + 0.5})
    assert verdicts(proved("runs", "proof-overlay", show=[first, second], run=first)) == (2 + 3, 1)


def test_the_chart_and_the_table_of_a_sweep_are_its_runs(monkeypatch):
    run_id = made_run("base")
    settings = read_settings(run_folder.run_folder(run_id))
    base = sweeps.Base(model=settings.model, train=settings.train, corpus=settings.corpus, pinned=PINNED)
    sweep = sweeps.create_sweep(base, "train.label_smoothing", ["0", "0.2"])
    for part in sweep.parts:
        train_run(part.run.id)
    badges = ("proof-sweep", "proof-sweep-curves")
    at = proved("runs", *badges, tab="Sweeps", sweep=sweep.id)
    assert verdicts(at) == (1 + 4 + 4 + 2 + 4, 0), texts(at)
    assert not at.toast
    tamper(sweep.parts[1].run.id, lambda row: {"loss": row["loss"] + 0.1})
    assert verdicts(proved("runs", "proof-sweep", tab="Sweeps", sweep=sweep.id))[1] == 1
    monkeypatch.setattr("pages.runs.sweep_panel.last_of", lambda *_: 12.0)
    monkeypatch.setattr("pages.runs.sweep_checks.last_of", lambda *_: 12.0)
    assert verdicts(proved("runs", "proof-sweep", tab="Sweeps", sweep=sweep.id))[1] == 4 + 1


@pytest.mark.parametrize("kind", ["paper", "constant", "cosine"])
def test_the_schedule_by_hand_is_the_schedule(kind):
    for warmup in (0, 1, 10):
        train = TrainConfig(schedule=kind, warmup_steps=warmup, learning_rate=0.01, max_steps=50)
        rates = [learning_rate(s, kind=kind, peak=0.01, warmup_steps=warmup, max_steps=50) for s in range(1, 60)]
        shown = np.array(rates)
        assert check_schedule(np.arange(1, 60), shown, train).holds
        assert not check_schedule(np.arange(1, 60), shown + np.eye(59)[7] * 1e-4, train).holds


@pytest.mark.parametrize(("view", "key"), [({}, "take-overlay"), ({"quantity": "exact match"}, "take-overlay")])
def test_the_lines_of_python_make_the_curves_that_are_taken_away(view, key):
    names = [trained_run("first"), trained_run("second", seed=1)]
    at = proved("runs", key, show=names, run=names[0], **view)
    (code,) = (sublayer.value for sublayer in at.code if "overlay_figure" in sublayer.value)
    made: dict = {}
    exec(compile(code, "lines", "exec"), made)
    shown = next(json.loads(c.proto.spec) for c in at.get("plotly_chart") if "take" in c.proto.id)
    own = json.loads(made["figure"].to_json())
    assert [trace["y"] for trace in own["data"]] == [trace["y"] for trace in shown["data"]]
    column = "exact_match" if view else "loss"
    assert made["numbers"][1][-1] == [r for r in run_folder.metrics(names[1]) if r["split"] == "validation"][-1][column]
    assert any("/runs?" in sublayer.value and "show=second" in sublayer.value for sublayer in at.code)
