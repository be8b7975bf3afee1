"""A training step on torch's meta device, which has shapes but no numbers: a tensor made on the wrong device, or a
number read within a step, is found on any machine."""

from dataclasses import replace

import pytest
import torch
from random_models import CONVOLUTIONAL_BUILDS, RECURRENT_BUILDS
from tiny_runs import MODEL, corpus, settings, tokenizer

from transformer.config import FAMILIES
from transformer.data.batches import BatchStream
from transformer.training.state import new_state
from transformer.training.step import Stepper

META = torch.device("meta")


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("model", [dict(), dict(norm="pre", positions="learned"), dict(score="additive")], ids=str)
def test_a_step_makes_no_tensor_elsewhere_and_reads_no_number(optimizer, model):
    config = settings(optimizer=optimizer, accumulate=2, weight_decay=0.1)
    state = new_state(replace(MODEL, **model), config, META)
    stepper = Stepper(state, config, tokenizer(), "float32", clock=lambda: 0.0)
    batches = iter(BatchStream(corpus().train, tokenizer(), batch_tokens=64, seed=0, max_length=MODEL.max_length))
    stepper.step(batches)
    stepper.step(batches)
    assert state.step == 2 and all(p.is_meta for p in stepper.parameters)


@pytest.mark.parametrize(
    ("family", "build"),
    [*(("rnn", build) for build in RECURRENT_BUILDS), *(("conv", build) for build in CONVOLUTIONAL_BUILDS)],
    ids=str,
)
def test_neither_does_a_model_of_another_family(family, build):
    config = settings()
    sizes = dict(vocab_size=MODEL.vocab_size, d_model=16, max_length=MODEL.max_length)
    state = new_state(FAMILIES[family](**sizes, **build), config, META)
    stepper = Stepper(state, config, tokenizer(), "float32", clock=lambda: 0.0)
    stepper.step(iter(BatchStream(corpus().train, tokenizer(), batch_tokens=64, seed=0, max_length=MODEL.max_length)))
    assert state.step == 1 and all(p.is_meta for p in stepper.parameters)


def test_reading_a_number_there_fails():
    with pytest.raises(RuntimeError):
        torch.ones(2, device=META).sum().item()
