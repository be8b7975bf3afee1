"""Train, what a run will take: parameters, memory and a time that was measured here."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest
from page_models import checked, open_page, texts
from page_runs import at_work, button, trained_run
from page_train import MEASURED, Measurements, fill, opened, press_train, train_button

from pages.shared.wording import plain
from pages.train import measuring
from pages.training import durations
from transformer.analysis.training import memory
from transformer.config import PRESETS, ModelConfig
from transformer.runs.status import run_folder as folder_of

pytestmark = pytest.mark.usefixtures("room", "measurements")


def test_a_measurement_is_made_when_asked_for_and_its_estimate_stays_with_the_run(started):
    at = open_page("train")
    assert not Measurements.begun
    at = checked(button(at, "Measure a few steps").click().run())
    assert Measurements.begun[0].model.vocab_size > 20 and "Measuring a few steps here" in texts(at)
    Measurements.found, Measurements.begun = MEASURED, []
    at = checked(at.run())
    assert plain("About 20 s here: 400 steps at 30 ms, 16 evaluations; then 2 s for held-out pairs.") in texts(at)
    press_train(at)
    estimate = durations.read_estimate(folder_of(started[0]))
    assert estimate is not None and estimate.training_s == pytest.approx(20, abs=0.5) and estimate.scoring_s == 2


def test_a_first_visitor_need_not_ask(monkeypatch):
    monkeypatch.setenv(measuring.MEASURE, "")
    at = open_page("train")
    assert Measurements.begun and "Measuring a few steps here" in texts(at)


def test_a_time_that_is_known_stays_known_while_a_run_is_at_work(monkeypatch):
    monkeypatch.setattr(measuring, "find", lambda work: MEASURED if work.threads == 2 else None)
    monkeypatch.setattr(measuring, "usable_cpus", lambda: 2)
    assert plain("About 20 s here: 400 steps") in texts(open_page("train"))
    at_work(trained_run())
    at = open_page("train")
    assert plain("About 20 s here once reverse-1 has ended: 400 steps") in texts(at)
    assert plain("The time beside reverse-1 is not measured here yet.") in texts(at)
    checked(button(at, "Measure a few steps").click().run())
    assert [work.threads for work in Measurements.begun] == [1]


def test_what_cannot_be_measured_says_why():
    Measurements.found = "none of the 200 pairs fits into max_length (2) tokens"
    assert plain("The time could not be measured: none of the 200 pairs fits") in texts(open_page("train"))


@pytest.mark.slow
def test_a_first_visit_does_not_pay_for_the_meta_device(tmp_path):
    code = (
        "import sys; from page_models import open_page, texts; at = open_page('train'); "
        "print('235,008' in texts(at), 'sympy' in sys.modules)"
    )
    places = {"PYTHONPATH": os.pathsep.join(sys.path), "ATTENTION_LAB_RUNS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | places, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.parametrize("options", [{}, {"positions": "rotary"}, {"norm": "none"}, {"activation_dropout": 0.1}])
def test_a_pass_without_numbers_counts_about_as_much_as_one_with_them(options, monkeypatch):
    config = ModelConfig(**{**asdict(PRESETS["tiny"]), "vocab_size": 100, **options})
    counted = memory.kept_bytes(config, 8, 30)
    monkeypatch.setattr(memory, "SMALL", 0)
    assert memory.kept_bytes(config, 8, 30) == pytest.approx(counted, rel=0.2)


def test_more_memory_than_there_is_is_said(monkeypatch):
    monkeypatch.setattr("pages.train.costs._free", lambda device: 10**6)
    at = open_page("train")
    assert plain("take smaller sizes or fewer tokens per batch") in texts(at) and not train_button(at).disabled


def test_the_costs_in_full_and_the_schedule_as_a_curve():
    Measurements.found = MEASURED
    at = checked(open_page("train").segmented_control(key="train-look").set_value("costs").run())
    assert at.query_params["look"] == "costs"
    for said in ("235,008", "the optimiser's means", "Steps per epoch", "Held-out pairs", "measured over 40"):
        assert said in texts(at) or plain(said) in texts(at)
    (curve,) = (json.loads(chart.proto.spec) for chart in at.get("plotly_chart"))
    assert curve["layout"]["yaxis"]["title"]["text"] == "learning rate"
    at = fill(at, "d_model", 130)
    assert "once its fields are valid" in texts(at)


def test_the_schedule_is_drawn_beside_its_field():
    at = opened(open_page("train"))
    titles = [json.loads(chart.proto.spec)["layout"].get("yaxis", {}).get("title") for chart in at.get("plotly_chart")]
    assert {"text": "learning rate"}.items() <= titles[0].items()
