"""The lines of Python that are taken away with the figures of Train and Runs make these very figures."""

import json

import pytest
from page_checks import proved
from page_runs import PINNED, made_run, trained_run

from transformer.checkpoints.settings import read_settings
from transformer.runs import run_folder, sweeps
from transformer.runs.worker import train_run

pytestmark = pytest.mark.usefixtures("room")


def same_figure(at, call):
    """What the lines with this call make, after they drew what is taken away."""
    (code,) = (sublayer.value for sublayer in at.code if call in sublayer.value)
    made: dict = {}
    exec(compile(code, "lines", "exec"), made)
    shown = next(json.loads(c.proto.spec) for c in at.get("plotly_chart") if "take" in c.proto.id)
    own = json.loads(made["figure"].to_json())
    assert own["data"] and [points(trace) for trace in own["data"]] == [points(trace) for trace in shown["data"]]
    return made


def points(trace):
    return [trace.get(name) for name in ("x", "y", "z", "name")]


def last_row(run_id, split="validation"):
    return [row for row in run_folder.metrics(run_id) if row["split"] == split][-1]


@pytest.mark.usefixtures("no_shipped")
@pytest.mark.parametrize(
    ("quantity", "split", "column"),
    [
        ("loss", "validation", "loss"),
        ("exact match", "validation", "exact_match"),
        ("gradient norm", "train", "gradient_norm"),
    ],
)
def test_the_lines_make_the_curves_of_a_run(quantity, split, column):
    run_id = trained_run()
    made = same_figure(proved("train", "take-curve", run=run_id, curve=[quantity]), "overlay_figure")
    assert made["numbers"][-1][-1] == last_row(run_id, split)[column]


@pytest.mark.usefixtures("no_shipped")
def test_one_of_several_quantities_is_chosen():
    at = proved("train", "take-curve", run=trained_run())
    at = at.segmented_control(key="take-curve-which").set_value("exact match").run()
    assert "exact_match" in same_figure(at, "overlay_figure")["column"]
    assert any("/train?" in sublayer.value and "run=" in sublayer.value for sublayer in at.code)


def test_the_lines_make_the_curves_of_a_shipped_model():
    made = same_figure(proved("train", "take-shipped", corpus="pronouns-en-fr"), "run_figure")
    assert len(made["numbers"]) == 3 and all(len(numbers) > 1 for numbers in made["numbers"])


@pytest.mark.usefixtures("no_shipped")
@pytest.mark.parametrize("metric", [{}, {"metric": "exact match"}])
def test_the_lines_make_the_chart_of_a_sweep(metric):
    settings = read_settings(run_folder.run_folder(made_run("base")))
    base = sweeps.Base(model=settings.model, train=settings.train, corpus=settings.corpus, pinned=PINNED)
    sweep = sweeps.create_sweep(base, "train.label_smoothing", ["0", "0.2"])
    for part in sweep.parts:
        train_run(part.run.id)
    made = same_figure(proved("runs", "take-sweep", tab="Sweeps", sweep=sweep.id, **metric), "sweep_figure")
    row = last_row(sweep.parts[1].run.id)
    assert made["numbers"][1] in (row["loss"], 100 * row["exact_match"])


@pytest.mark.usefixtures("no_shipped")
def test_the_lines_make_the_lengths_of_a_corpus():
    made = same_figure(
        proved("train", "take-lengths", look="corpus", corpus="reverse", max_length="8"), "length_figure"
    )
    assert [trace.name for trace in made["figure"].data] == [made["corpus"].source_name, made["corpus"].target_name]
    assert len(made["figure"].layout.shapes) == 1, "the limit"


@pytest.mark.usefixtures("no_shipped", "measurements")
@pytest.mark.parametrize("schedule", ["paper", "cosine"])
def test_the_lines_make_the_course_of_the_learning_rate(schedule):
    plan = {"schedule": schedule, "steps": "300", "warmup_steps": "40", "learning_rate": "0.002"}
    made = same_figure(
        proved("train", "take-schedule-in-full", look="costs", corpus="reverse", **plan), "schedule_figure"
    )
    assert made["numbers"].max() == pytest.approx(0.002, rel=0.02) and made["steps"][-1] == 300
