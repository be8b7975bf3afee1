"""Why a run without a part failed: told from the weights of the run, and only where they bear it out."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_runs

from pages.playground import reasons
from pages.playground.choices import Knobs
from pages.playground.reasons import reason
from pages.training.live.clearest import output_of
from pages.training.live.settings import TEXTS as KNOBS
from transformer.config import CorpusConfig
from transformer.runs import run_folder
from transformer.runs.kept_weights import snapshots_of
from transformer.runs.worker import train_run
from transformer.views.training.timeline import decode_snapshot


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """Returns a function that trains a tiny run without some parts: the run, and its output for a text."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))

    def train(text="a b c", **model):
        config = replace(tiny_runs.MODEL, **model)
        run_id = run_folder.create_run(config, tiny_runs.settings(), CorpusConfig(name="reverse"), pinned=())
        train_run(run_id)
        run = run_folder.get_run(run_id)
        return run, output_of(decode_snapshot(run.folder, "weights.safetensors", text))

    return train


def test_without_positions_the_other_order_of_the_letters_is_tried_and_told(trained):
    run, output = trained(positions="none")
    said = reason(run, Knobs(without=("positions",)), output)
    assert said.startswith("The opposite order, *c b a*, comes out just the same: without positions")
    backwards = decode_snapshot(run.folder, "weights.safetensors", "c b a")
    assert backwards.tokens == output.tokens


@pytest.mark.parametrize("text", ["a b a", "a"])
def test_of_letters_that_have_no_other_order_none_is_told(trained, text):
    run, output = trained(text, positions="none")
    assert reason(run, Knobs(without=("positions",)), output) == KNOBS("why.positions")


def test_an_order_that_matters_is_not_called_the_same(trained):
    """A link may name a run that has the part which its knobs lack."""
    run, output = trained()
    assert reason(run, Knobs(without=("positions",)), replace(output, tokens=("z", "</s>"))) == KNOBS("why.positions")
    assert reason(run, Knobs(without=("scale_scores",)), output) == KNOBS("why.scale_scores")
    no_attention = replace(output, weights=output.weights[:0])  # that of a recurrent model
    assert reason(run, Knobs(without=("positions",)), no_attention) == KNOBS("why.positions")


@pytest.mark.parametrize(("columns", "told"), [([1, 1, 1, 3], True), ([1, 1, 0, 1], False)])
def test_a_letter_that_every_row_looks_at_is_named_whatever_the_end_mark_looks_at(trained, monkeypatch, columns, told):
    run, output = trained(positions="none")
    monkeypatch.setattr(reasons, "decoded_with", lambda *_: output)
    output = replace(output, weights=np.eye(4)[columns][None, None], ended=True, tokens=("c", "a", "b", "</s>"))
    said = reason(run, Knobs(without=("positions",)), output)
    assert ("Its head looks at *b* whatever it writes" in said) == told


def test_without_scaling_the_largest_weights_of_the_untrained_encoder_are_told(trained):
    """The weights with scores divided by the square root of d_k, from the scores of the recorded pass themselves."""
    run, output = trained(scale_scores=False, d_model=32, n_heads=2)
    said = reason(run, Knobs(heads=2, without=("scale_scores",)), output)
    first = snapshots_of(run)[0]
    assert first.step == 0
    shown = decode_snapshot(run.folder, first.path.relative_to(run.folder).as_posix(), "a b c")
    weights = shown.attention["encoder_self"].weights.astype(float)
    scores = np.log(weights)  # up to a constant of each row
    powers = np.exp(scores / 4)
    divided = powers / powers.sum(-1, keepdims=True)
    assert f"was {weights.max(-1).mean():.2f} on average at step 0, not {divided.max(-1).mean():.2f} as with" in said
    assert "scores 4 times smaller" in said


def test_weights_that_are_gone_leave_the_general_reason(trained):
    run, output = trained(positions="none")
    for snapshot in snapshots_of(run):
        snapshot.path.unlink()
    assert reason(run, Knobs(without=("positions",)), output) == KNOBS("why.positions")


def test_of_several_missing_parts_all_are_named(trained):
    run, output = trained(positions="none")
    assert reason(run, Knobs(without=("positions", "residual")), output).startswith("It had to do without positions")
    assert reason(run, Knobs(), output) == ""
