"""Resuming training changes nothing by a bit, and its randomness belongs to the run alone."""

import json
from dataclasses import replace

import pytest
import torch
from random_models import CONVOLUTIONAL_BUILDS, RECURRENT_BUILDS
from tiny_runs import CPU, MODEL, corpus, event_losses, events, settings, state, tokenizer

from transformer.config import FAMILIES
from transformer.training import loop
from transformer.training.events import StepDone
from transformer.training.loop import measured_precision, train_steps
from transformer.training.state import new_state, restored_state, weights_of


def saved_and_restored(before, config, model=MODEL):
    """The state after a trip through what a file holds: tensors, and text."""
    tensors = {name: value.clone() for name, value in before.tensors().items()}
    return restored_state(model, config, CPU, tensors, json.loads(json.dumps(before.facts())))


def until(found, step, kind=StepDone):
    """The events up to and with the one of this kind at this step."""
    taken = []
    for event in found:
        taken.append(event)
        if isinstance(event, kind) and event.step == step:
            return taken
    raise AssertionError(f"step {step} was not reached")


def resumed_losses(config, stops, model=MODEL):
    """The losses of a run that is saved, thrown away and restored at each of these steps."""
    now, taken = state(config, model), []
    for step in stops:
        taken += until(train_steps(now, config, corpus(), tokenizer()), step)
        now = saved_and_restored(now, config, model)
    return event_losses(taken + events(now, config)), weights_of(now.model)


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(average_last=3),
        dict(patience=100, weight_decay=0.1),
        dict(accumulate=2, schedule="cosine"),
        dict(optimizer="muon", schedule="wsd", warmup_steps=8, weight_decay=0.1),
        dict(label_smoothing=0.0, clip_norm=0.0, precision="bfloat16"),
    ],
    ids=lambda changes: ",".join(changes) or "default",
)
def test_saving_and_resuming_changes_no_loss_and_no_weight_by_a_bit(changes):
    config = settings(max_steps=30, **changes)
    precision = config.precision
    whole = state(config)
    expected = event_losses(train_steps(whole, config, corpus(), tokenizer(), precision=precision))
    now = state(config)
    taken = until(train_steps(now, config, corpus(), tokenizer(), precision=precision), 15)
    now = saved_and_restored(now, config)
    taken += train_steps(now, config, corpus(), tokenizer(), precision=precision)
    assert event_losses(taken) == expected
    assert all(torch.equal(value, weights_of(now.model)[name]) for name, value in weights_of(whole.model).items())


@pytest.mark.slow_variants
@pytest.mark.parametrize(
    ("family", "build"),
    [*(("rnn", build) for build in RECURRENT_BUILDS), *(("conv", build) for build in CONVOLUTIONAL_BUILDS)],
    ids=str,
)
def test_neither_does_it_in_a_model_of_another_family(family, build):
    config = settings(max_steps=30)
    sizes = dict(vocab_size=MODEL.vocab_size, d_model=16, max_length=MODEL.max_length)
    model = FAMILIES[family](**sizes, dropout=0.2, **build)
    expected = event_losses(events(state(config, model), config))
    found, _ = resumed_losses(config, stops=(10, 20), model=model)
    assert found == expected and len(set(expected)) > 20


def test_a_run_saved_between_the_last_step_and_its_evaluation_makes_up_for_it():
    config = settings(max_steps=40, average_last=2)
    expected = event_losses(events(state(config), config))
    found, _ = resumed_losses(config, stops=(10, 20))
    assert found == expected


@pytest.mark.slow
def test_a_thousand_steps_equal_five_hundred_and_five_hundred_more():
    config = settings(max_steps=1_000, evaluate_every=250)
    model = replace(MODEL, d_model=8, d_ff=16)
    expected = event_losses(events(state(config, model), config))
    found, _ = resumed_losses(config, stops=(500,), model=model)
    assert len(expected) == 1_004
    assert found == expected


def test_a_state_of_another_model_is_refused():
    config = settings()
    tensors, facts = state(config).tensors(), state(config).facts()
    with pytest.raises(ValueError, match=r"encoder\.embedding\.tokens\.weight has shape \(24, 16\)"):
        restored_state(replace(MODEL, d_model=32), config, CPU, tensors, facts)


def test_training_leaves_the_callers_generator_alone():
    config = settings()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    events(state(config), config)
    assert torch.equal(torch.rand(3), expected)


def test_draws_of_others_do_not_change_a_run():
    config = settings()
    expected = event_losses(events(state(config), config))
    found = []
    for event in train_steps(state(config), config, corpus(), tokenizer()):
        torch.rand(5)
        found.append(event)
    assert event_losses(found) == expected


def test_another_seed_is_another_run():
    first, second = (event_losses(events(state(config), config)) for config in (settings(seed=1), settings(seed=2)))
    assert first != second


def test_measuring_precision_changes_nothing(monkeypatch):
    monkeypatch.setattr(loop, "TRIAL_FROM", 0)
    config = settings(precision="auto")
    expected = event_losses(events(state(config), config))
    start = state(config)
    assert measured_precision(start, config, corpus(), tokenizer()) in ("float32", "bfloat16")
    assert event_losses(events(start, config)) == expected


def test_a_small_model_trains_in_float32_on_a_cpu():
    config = settings(precision="auto")
    assert measured_precision(state(config), config, corpus(), tokenizer()) == "float32"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_same_code_trains_on_a_gpu_and_resumes_there(precision, optimizer):
    config = settings(max_steps=60, device="cuda", precision=precision, optimizer=optimizer)
    cuda = torch.device("cuda")
    whole, now = new_state(MODEL, config, cuda), new_state(MODEL, config, cuda)
    expected = list(train_steps(whole, config, corpus(), tokenizer(), precision=precision))
    taken = []
    for event in train_steps(now, config, corpus(), tokenizer(), precision=precision):
        taken.append(event)
        if event.step == now.step == 30:
            break
    now = restored_state(MODEL, config, cuda, now.tensors(), now.facts())
    taken += train_steps(now, config, corpus(), tokenizer(), precision=precision)
    assert [event.step for event in taken] == [event.step for event in expected]
    for (*_, loss), (*_, wanted) in zip(event_losses(taken), event_losses(expected), strict=True):
        assert loss == pytest.approx(wanted, abs=1e-3)  # CUDA's sums need not come in the same order twice
    assert expected[-2].loss < expected[0].loss
