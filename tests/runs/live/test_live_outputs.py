"""Watching a run at work: the trainer answers with its own weights, at a bounded cost, and trains as if alone."""

import json
import os
import time

import numpy as np
import pytest
import tiny_runs
import torch
from page_models import REVERSE
from random_models import EVERY_BUILD

from transformer.checkpoints.store import load_checkpoint
from transformer.lab import Lab
from transformer.runs import run_folder
from transformer.runs.live import watched
from transformer.runs.live.outputs import EVERY_S, SHARE, LiveOutputs, live_output
from transformer.runs.live.watched import LIVE_FILE, WATCHED_FILE, live_outputs, want, wanted, write_outputs
from transformer.runs.worker import train_run
from transformer.training.events import StepDone

TEXT = "a b c d"


@pytest.fixture
def runs(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    return tmp_path


def a_model():
    torch.manual_seed(3)
    return tiny_runs.state(tiny_runs.settings()).model


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


def test_the_output_is_that_of_the_very_weights_and_of_one_pass(own_models):
    checkpoint = load_checkpoint(own_models / REVERSE)
    shown = live_output(checkpoint.model, checkpoint.tokenizer, TEXT, 7)
    seen = Lab(checkpoint).inspect(TEXT)
    n = len(shown.tokens)
    assert (shown.step, shown.text, shown.tokens) == (7, TEXT, seen.target_tokens[:n])
    assert shown.ended == (seen.ended and n == len(seen.target_tokens))
    np.testing.assert_array_equal(shown.probabilities, seen.probabilities[:n])
    np.testing.assert_array_equal(shown.weights, seen.cross.weights[:, :, :n])
    np.testing.assert_array_equal(shown.mask, seen.cross.mask[:, :n])


def test_an_output_without_end_is_cut_at_twice_the_source_and_ten():
    model = a_model()
    shown = live_output(model, tiny_runs.tokenizer(), TEXT, 0)
    assert shown.ended or len(shown.tokens) == 2 * len(shown.source) + 10


@pytest.mark.parametrize("training", [True, False])
def test_it_leaves_the_model_and_the_generator_of_random_numbers_as_they_were(training):
    model = a_model().train(training)
    before = torch.get_rng_state()
    live_output(model, tiny_runs.tokenizer(), TEXT, 0)
    assert model.training is training
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("build", EVERY_BUILD)
def test_every_model_can_be_watched(build):
    model = EVERY_BUILD[build](vocab_size=tiny_runs.tokenizer().vocab_size)
    shown = live_output(model, tiny_runs.tokenizer(), TEXT, 0)
    assert shown.weights.shape[2:] == (len(shown.tokens), len(shown.source))
    sums = shown.weights.sum(-1)
    assert not shown.weights.size or np.allclose(sums, 1, atol=1e-5)


def test_outputs_are_read_back_as_they_were_written(tmp_path):
    shown = live_output(a_model(), tiny_runs.tokenizer(), TEXT, 3)
    write_outputs(tmp_path, [shown])
    (found,) = live_outputs(tmp_path).values()
    for name, value in vars(shown).items():
        np.testing.assert_array_equal(getattr(found, name), value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda row: row.pop("weights"),
        lambda row: row.update(shape=[1, 2]),
        lambda row: row.update(shape=[1, 2, -1, 4]),
        lambda row: row.update(shape=[10**9, 10**9, 4, 5]),
        lambda row: row.update(weights="?"),
        lambda row: row.update(tokens=[1, 2]),
        lambda row: row.update(tokens=["a"]),
        lambda row: row.update(probabilities=None),
        lambda row: row.update(step="7"),
        lambda row: row.update(text=None),
        lambda row: row.clear(),
    ],
)
def test_a_damaged_output_is_left_out(tmp_path, damage):
    shown = live_output(a_model(), tiny_runs.tokenizer(), TEXT, 3)
    write_outputs(tmp_path, [shown])
    content = json.loads((tmp_path / LIVE_FILE).read_text())
    damage(content["outputs"][0])
    (tmp_path / LIVE_FILE).write_text(json.dumps(content))
    assert live_outputs(tmp_path) == {}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"outputs": 7}', '{"outputs": [null, 3, []]}', '{"texts": "a"}'])
def test_damaged_files_hold_nothing(tmp_path, content):
    for name in (LIVE_FILE, WATCHED_FILE):
        (tmp_path / name).write_text(content)
    assert live_outputs(tmp_path) == {}
    assert wanted(tmp_path) == ()


def test_sentences_are_wanted_for_a_while(tmp_path):
    assert wanted(tmp_path) == ()
    want(tmp_path, ["a", "b"])
    assert wanted(tmp_path) == ("a", "b")
    old = time.time() - watched.WANTED_S - 1
    os.utime(tmp_path / WATCHED_FILE, (old, old))
    assert wanted(tmp_path) == ()


def test_many_sentences_take_turns_and_cost_no_more_than_one(tmp_path, monkeypatch):
    want(tmp_path, ["a", "b", "c"])
    clock, steps = Clock(), []

    def slow(model, tokenizer, text, step):
        steps.append(step)
        clock.now += 0.02
        return live_output(model, tokenizer, text, step)

    monkeypatch.setattr("transformer.runs.live.outputs.live_output", slow)
    live, model = LiveOutputs(tmp_path, tiny_runs.tokenizer(), clock), a_model()
    for step in range(400):
        live.write_if_due(model, step)
        clock.now += 0.01
    assert 0.02 * len(steps) == pytest.approx(SHARE * clock.now, rel=0.1)
    assert sorted(output.step for output in live_outputs(tmp_path).values()) == steps[-3:]


def test_a_sentence_that_cannot_be_read_is_left_out_and_the_others_go_on(tmp_path):
    want(tmp_path, ["", "a " * 100, "a"])
    clock = Clock()
    live, model = LiveOutputs(tmp_path, tiny_runs.tokenizer(), clock), a_model()
    for step in range(6):
        live.write_if_due(model, step)
        clock.now += EVERY_S
    assert list(live_outputs(tmp_path)) == ["a"]


def test_a_run_that_nobody_watches_decodes_nothing(tmp_path):
    clock = Clock()
    live = LiveOutputs(tmp_path, tiny_runs.tokenizer(), clock)
    for step in range(10):
        live.write_if_due(None, step)
        clock.now += 1
    assert not (tmp_path / LIVE_FILE).exists()


@pytest.fixture
def asked_at_every_step(monkeypatch):
    for name, value in {"EVERY_S": 0.0, "SHARE": 1e9, "ASKED_EVERY_S": 0.0}.items():
        monkeypatch.setattr(f"transformer.runs.live.outputs.{name}", value)


def test_a_watched_run_trains_as_if_alone_and_leaves_no_sentence_behind(runs, asked_at_every_step):
    weights, steps = [], []
    for watches in (False, True):
        run_id = tiny_runs.create(pinned=())
        folder = runs / run_id

        def look(event, folder=folder, watches=watches):
            if watches and isinstance(event, StepDone):
                want(folder, [TEXT])
                steps.extend(output.step for output in live_outputs(folder).values())

        train_run(run_id, look)
        assert run_folder.get_run(run_id).status.state == "finished"
        assert not (folder / WATCHED_FILE).exists() and not (folder / LIVE_FILE).exists()
        weights.append(load_checkpoint(folder).model.state_dict())
    assert len(set(steps)) > 15
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name]), name


def test_each_output_is_that_of_its_own_step(runs, asked_at_every_step):
    run_id = tiny_runs.create(pinned=(), max_steps=10)
    folder, shown = runs / run_id, {}

    def look(event):
        want(folder, [TEXT])
        shown.update({output.step: output for output in live_outputs(folder).values()})

    train_run(run_id, look)
    kept = load_checkpoint(folder, weights=folder / "snapshots" / "4.safetensors")
    again = live_output(kept.model, kept.tokenizer, TEXT, 4)
    np.testing.assert_array_equal(shown[4].weights, again.weights)
    np.testing.assert_array_equal(shown[4].probabilities, again.probabilities)
