"""The trainings of an experiment as ordinary runs: the same numbers, with a folder, curves and a card each."""

from dataclasses import replace

import pytest

from transformer.config import PRESETS, TrainConfig
from transformer.experiments.measuring import run_experiment
from transformer.experiments.paper import averaging, heads, table_3
from transformer.experiments.results import ExperimentError
from transformer.experiments.training import HIGHEST, kept_as_runs, train_briefly
from transformer.lab import load
from transformer.runs import run_folder, worker

COMMAND = "python -m transformer experiment run heads"


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """An empty folder of runs."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def short(module, seeds=(0, 1), size=4, **levels):
    """The experiment of a module with fewer levels and steps, as (experiment, budget)."""
    experiment = module.EXPERIMENT
    full = experiment.budget()
    return experiment, replace(full, levels={**full.levels, **levels}, seeds=seeds, size=size)


@pytest.mark.slow
def test_the_models_of_the_first_seed_are_runs_and_the_numbers_are_the_same(room, tmp_path):
    experiment, budget = short(heads, task=("sort",), heads=(1, 4), steps=(4,))
    kept = run_experiment(experiment, budget, tmp_path / "kept.json", command=COMMAND, keep_runs=True)
    plain = run_experiment(experiment, budget, tmp_path / "plain.json", command=COMMAND)
    assert [row.values for row in kept.rows] == [row.values for row in plain.rows]
    runs = {run.id: run for run in run_folder.list_runs()}
    assert set(runs) == {"heads-sort-1-of-64-4-steps", "heads-sort-4-of-16-4-steps"}
    for run in runs.values():
        assert run.status.state == "finished" and run.loadable and run.settings.train.seed == 0
        assert COMMAND in (run.folder / "CARD.md").read_text()
    lab = load("heads-sort-4-of-16-4-steps")
    assert lab.model.config.n_heads == 4 and lab.inspect("c a b").source_tokens
    assert len(run_folder.samples("heads-sort-4-of-16-4-steps"))


@pytest.mark.slow
def test_steps_are_seen_and_models_that_are_altered_leave_no_run(room, tmp_path):
    experiment, budget = short(averaging, seeds=(0,), size=20)
    kept = run_experiment(experiment, budget, tmp_path / "kept.json", command=COMMAND, keep_runs=True)
    plain = run_experiment(experiment, budget, tmp_path / "plain.json")
    assert [row.values for row in kept.rows] == [row.values for row in plain.rows]
    experiment, budget = short(table_3, seeds=(0,), model=("B: d_k 2",), steps=(2,))
    run_experiment(experiment, budget, tmp_path / "narrow.json", keep_runs=True)
    assert [run.id for run in run_folder.list_runs()] == ["averaging-sort"]


def test_a_run_that_is_paused_ends_the_experiment_and_is_trained_anew_when_it_goes_on(room, tmp_path, monkeypatch):
    experiment, budget = short(heads, seeds=(0,), task=("sort",), heads=(2,), steps=(4,))
    train = worker._train
    monkeypatch.setattr(worker, "_train", lambda folder, *given: _asked_to_pause(folder, train, given))
    with pytest.raises(
        ExperimentError, match=r"the run heads-sort-2-of-32-4-steps is paused .*: continue the experiment"
    ):
        run_experiment(experiment, budget, tmp_path / "kept.json", command=COMMAND, keep_runs=True)
    monkeypatch.setattr(worker, "_train", train)
    results = run_experiment(experiment, budget, tmp_path / "kept.json", command=COMMAND, keep_runs=True)
    assert len(results.rows) == 1
    assert [(run.id, run.status.state) for run in run_folder.list_runs()] == [
        ("heads-sort-2-of-32-4-steps", "finished")
    ]


def _asked_to_pause(folder, train, given):
    (folder / "request.json").write_text('{"request": "pause"}')
    return train(folder, *given)


def test_a_run_whose_loss_is_no_number_counts_as_diverged():
    wild = TrainConfig(max_steps=30, batch_tokens=64, evaluate_pairs=4, weight_decay=1e30, warmup_steps=0)
    with kept_as_runs("wild", COMMAND):
        found = train_briefly("reverse", PRESETS["tiny"], wild, seed=0, run="rate")
    assert found["diverged"] == 1 and found["exact_match"] == 0 and found["validation_loss"] == HIGHEST
    (run,) = run_folder.list_runs()
    assert (run.id, run.status.state) == ("wild-rate", "failed")
