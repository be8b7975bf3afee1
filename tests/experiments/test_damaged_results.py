"""Damaged results of experiments: read, judged and drawn, or refused in a sentence, and nothing else."""

import json
import math
import multiprocessing
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest
from fakes.experiment import fake_experiment

from transformer.experiments.experiment import Experiment
from transformer.experiments.measuring import run_experiment
from transformer.experiments.paper import EXPERIMENTS, listed
from transformer.experiments.results import ExperimentError, Results, load_results, read_results, shipped_file
from transformer.files import runs_folder
from transformer.views.experiments import ExperimentCurves, ExperimentFindings

WRONG = [None, "", "x", [], {}, [1], {"a": 1}, 10**400, 10**20, -(10**400), math.nan, math.inf, -1, 0, 0.5, 1e300, True]
SHIPPED = [each.name for each in listed()]
pytestmark = pytest.mark.usefixtures("room")


def places(content, at=()):
    """Yields the place of every value in JSON content, outermost first."""
    yield at
    if isinstance(content, (dict, list)):
        for key in content if isinstance(content, dict) else range(len(content)):
            yield from places(content[key], (*at, key))


def changed(text, place, action):
    """The text with one value replaced, or left out where the action is "delete"."""
    if not place:
        return json.dumps(None if action == "delete" else action)
    content = inner = json.loads(text)
    for key in place[:-1]:
        inner = inner[key]
    if action == "delete":
        del inner[place[-1]]
    else:
        inner[place[-1]] = action
    return json.dumps(content)


def use(experiment: Experiment, path: Path) -> Results:
    """Reads, judges and draws results as the page does."""
    results = read_results(path, shipped=True)
    experiment.verdict(results)
    ExperimentFindings().figure(ExperimentFindings().data(results))
    for chart in experiment.charts:
        left = [factor.name for factor in experiment.factors if factor.name not in (chart.x, chart.by)]
        where = tuple((name, results.levels(name, chart.metric)[-1]) for name in left)
        log_y = experiment.metric(chart.metric).log
        view = ExperimentCurves(
            metric=chart.metric, x=chart.x, by=chart.by, where=where, log_x=chart.log_x, log_y=log_y
        )
        view.figure(view.data(results))
    return results


def refused_or_used(experiment: Experiment, path: Path, text: str) -> bool:
    """Tells whether such a file is used; what it is refused with is a sentence."""
    path.write_text(text, encoding="utf-8")
    try:
        use(experiment, path)
    except ExperimentError as error:
        assert str(error) and "\n" not in str(error)
        return False
    return True


@pytest.mark.parametrize("name", SHIPPED)
def test_results_with_any_wrong_value_are_used_or_refused_in_a_sentence(name, tmp_path):
    experiment, text, draws = EXPERIMENTS[name], shipped_file(name).read_text(encoding="utf-8"), random.Random(name)
    path, every = tmp_path / "results.json", list(places(json.loads(text)))
    assert refused_or_used(experiment, path, text)
    heads = [place for place in every if len(place) <= 1]
    cases = [(place, action) for place in heads for action in draws.sample([*WRONG, "delete"], 3)]
    cases += [(draws.choice(every), draws.choice([*WRONG, "delete"])) for _ in range(30)]
    for place, action in cases:
        refused_or_used(experiment, path, changed(text, place, action))
    for _ in range(10):
        assert not refused_or_used(experiment, path, text[: draws.randrange(len(text) - 3)])


@pytest.mark.parametrize("action", [*WRONG, "delete"], ids=lambda action: repr(action)[:12])
def test_every_place_of_a_file_takes_every_wrong_value(action, tmp_path):
    """The same, of all places of a short file, of which many more can be judged."""
    name = "averaging"
    text = shipped_file(name).read_text(encoding="utf-8")
    content = json.loads(text)
    whole = json.dumps(content | {"rows": content["rows"][:12]})
    for place in places(json.loads(whole)):
        refused_or_used(EXPERIMENTS[name], tmp_path / "results.json", changed(whole, place, action))


@pytest.mark.parametrize(
    ("place", "value", "because"),
    [
        (("rows", 0, 1), {"a": 1}, "a level is no number or string"),
        (("rows", 0, 1), True, "a level is no number or string"),
        (("rows", 0, 2), 1.5, "a seed is no whole number"),
        (("rows", 0, 3), 10**400, "experiment is missing or has another shape"),  # no file with such a number is read
        (("rows", 0, 3), math.inf, "a measurement is no finite number"),
        (("rows", 0, 3), "much", "a measurement is no finite number"),
        (("rows", 0, 5), -1, "elapsed_s is no time"),
        (("rows", 0), [1], "a row does not have 6 columns"),
        (("rows",), {}, "rows is missing or has another shape"),
        (("factors", 0), "seed", "columns must be seed, averaged"),
        (("metrics", 0), "exact_match", "metrics must be names"),
        (("versions", "torch"), 2, "versions must be strings"),
        (("machine",), None, "machine is missing or has another shape"),
        (("budget",), "huge", "averaging has no budget 'huge'.*: full, small; run it again"),
        (("experiment",), "table-1", "hold measurements that are not part of it: run it again"),
        (("rows", 0, 1), 3, "hold measurements that are not part of it: run it again"),
        (("rows", 1, 1), 1, "hold a measurement twice: run it again"),
    ],
)
def test_what_is_wrong_is_named(place, value, because, tmp_path):
    text = changed(shipped_file("averaging").read_text(encoding="utf-8"), place, value)
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    with pytest.raises(ExperimentError, match=because):
        use(EXPERIMENTS["averaging"], tmp_path / "results.json")


def test_a_number_that_no_logarithm_takes_is_refused(tmp_path):
    content = json.loads(shipped_file("table-1").read_text(encoding="utf-8"))
    column = content["columns"].index("time_ms")
    row = next(i for i, row in enumerate(content["rows"]) if row[column] is not None)
    text = changed(json.dumps(content), ("rows", row, column), -1)
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    with pytest.raises(ExperimentError, match="a measurement of time_ms is -1, not above 0: run it again"):
        use(EXPERIMENTS["table-1"], tmp_path / "results.json")


def test_results_of_another_experiment_are_not_taken_for_one_s_own(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.experiments.results.SHIPPED_RESULTS", tmp_path)
    (tmp_path / "heads.json").write_text('{"x": 1}', encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"heads\.json holds no results that can be read: experiment is missing"):
        load_results("heads")
    run_experiment(fake_experiment("holds"), fake_experiment("holds").budget(), tmp_path / "heads.json")
    with pytest.raises(ExperimentError, match=r"heads\.json holds results of fake, full: measure again"):
        load_results("heads")


# Two at once


def test_a_second_one_that_measures_the_same_is_refused_and_nothing_is_lost_or_doubled(tmp_path):
    path, met = tmp_path / "fake.json", []

    def another(cell, seed):
        met.append((cell["coin"], seed))
        with pytest.raises(ExperimentError, match="fake is being measured by another process already: wait until it"):
            run_experiment(fake_experiment("holds"), fake_experiment("holds").budget(), path)

    experiment = fake_experiment("holds", another)
    results = run_experiment(experiment, experiment.budget(), path)
    assert met == [(row.cell["coin"], row.seed) for row in results.rows] and len(set(met)) == 6
    assert run_experiment(fake_experiment("holds"), experiment.budget(), path) == results  # the lock is free again


def measure_slowly(folder: str, path: str, begun, may_end) -> None:
    """Measures in a process of its own, and halts at the first measurement."""

    def halt(cell, seed):
        begun.set()
        may_end.wait(60)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", folder)
        run_experiment(fake_experiment("holds", halt), fake_experiment("holds").budget(), Path(path))


@pytest.mark.processes
def test_a_process_that_is_killed_frees_the_experiment(tmp_path, monkeypatch):
    # A new process runs the file of __main__ first, which a page opened by AppTest has left as its own script.
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    spawn, path, experiment = multiprocessing.get_context("spawn"), tmp_path / "fake.json", fake_experiment("holds")
    begun, may_end = spawn.Event(), spawn.Event()
    process = spawn.Process(target=measure_slowly, args=(str(runs_folder()), str(path), begun, may_end))
    process.start()
    try:
        assert begun.wait(120)
        with pytest.raises(ExperimentError, match="being measured by another process"):
            run_experiment(experiment, experiment.budget(), path)
    finally:
        process.kill()
        process.join()
    assert len(run_experiment(experiment, experiment.budget(), path).rows) == 6
