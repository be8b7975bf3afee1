"""The whole path on torch's meta device, which has shapes but no numbers, as any machine can: models of every build
through forward pass, loss, training step and decoding, and every intervention.

A tensor made on the wrong device, or a number read back from the device, is an error there as on a GPU.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import repeat
from typing import Any

import pytest
import torch
from random_models import EVERY_BUILD, SWITCH_OF_EACH_KIND, ragged_batch, random_model
from tiny_runs import settings, tokenizer
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from transformer.data.batches import Batch, make_batch
from transformer.data.batches import Position as Place
from transformer.decoding.greedy import NextToken
from transformer.interventions import INTERVENTIONS, compile_interventions, parse_intervention
from transformer.lab import load
from transformer.model import transformer
from transformer.model.taps import Recorder, chain
from transformer.training.devices import generator_states
from transformer.training.loss import Smoothing, projected_cross_entropy
from transformer.training.optimizer import build_optimizer
from transformer.training.state import TrainState
from transformer.training.step import Stepper

META = torch.device("meta")
COPIES = {"aten::_to_copy", "aten::copy_"}


class OneDevice(TorchDispatchMode):
    """A block where no operation but an explicit copy may mix devices; torch itself lets numbers and indices pass."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        devices = {x.device.type for x in tree_leaves((args, kwargs, result)) if isinstance(x, Tensor)}
        assert len(devices) < 2 or func.name().split(".")[0] in COPIES, f"{func.name()} mixes {sorted(devices)}"
        return result


def recorded_pass(model: Any) -> None:
    source, target = (ids.to(META) for ids in ragged_batch())
    recorder = Recorder()
    with OneDevice():
        model(source, target, tap=recorder)
    assert set(recorder.recording) == set(model.sites())
    assert all(tensor.is_meta for tensor in recorder.recording.values())


def batches() -> Iterator[tuple[Batch, Place]]:
    """Batches of two short sentences, as recurrent models take a step for each token."""
    return repeat((make_batch([([4, 5], [6, 7, 8]), ([9], [10])]), Place()))


def training(model: Any, *, steps: int = 1, **changes: Any) -> None:
    config = settings(weight_decay=0.1, **changes)
    optimizer, generators = build_optimizer(model, config), generator_states(META)
    state = TrainState(model.train(), optimizer, META, generators, Place())
    stepper, given = (
        Stepper(state, config, tokenizer(), "float32", clock=lambda: 0.0, smoothing=Smoothing(0.1)),
        batches(),
    )
    with OneDevice():
        for _ in range(steps):
            stepper.step(given)
    assert state.step == steps and all(p.is_meta for p in stepper.parameters)


def decoding(model: Any, *, cache: bool = True, tap: Recorder | None = None) -> None:
    source, _ = (ids.to(META) for ids in ragged_batch())
    with OneDevice():
        ask = NextToken(model, source, None, max_length=4, tap=tap, record=None, cache=cache, per_source=2)
        logits, _ = ask.logits(torch.ones(6, dtype=torch.long, device=META))
        ask.rows(torch.arange(6, device=META).flip(0), same_sources=True)
        ask.rows(torch.arange(4, device=META))
        fewer, _ = ask.logits(torch.ones(4, dtype=torch.long, device=META))
    assert logits.is_meta and logits.shape == (6, model.config.vocab_size) and len(fewer) == 4


PATHS: dict[str, Callable[[Any], None]] = {
    "recorded pass": recorded_pass,
    "training step": training,
    "decoding": decoding,
    "watched decoding": lambda model: decoding(model, tap=Recorder()),
    "decoding without a cache": lambda model: decoding(model, cache=False),
}
QUICK = {
    "transformer positions=sinusoidal",
    "transformer positions=rotary",
    "transformer norm=pre",
    "transformer score=additive positions=alibi",
    "recurrent cell=lstm attention=additive",
    "recurrent cell=gru attention=general input_feeding=True",
    "convolutional separable=True",
}
"""Builds that have every kind of part between them: torch computes shapes in Python, which takes its time."""
BUILDS = [pytest.param(build, marks=() if build in QUICK else pytest.mark.slow) for build in EVERY_BUILD]


def on_meta(build: str) -> Any:
    # Dropout draws numbers in training; the corpus has 24 tokens.
    layers = {} if build.startswith("recurrent") else dict(n_encoder_layers=1, n_decoder_layers=1)
    return EVERY_BUILD[build](**{"dropout": 0.1, "vocab_size": 24, **layers}).to(META)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("build", BUILDS)
def test_no_path_of_a_build_leaves_its_device_or_reads_a_number(build, path):
    PATHS[path](on_meta(build))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_neither_do_steps_of_an_optimiser_over_several_batches(optimizer):
    training(on_meta("convolutional"), steps=2, optimizer=optimizer, accumulate=2)


def test_neither_does_a_model_without_a_causal_mask():
    model = random_model(causal_mask=False, n_encoder_layers=1, n_decoder_layers=1).to(META)
    recorded_pass(model)
    decoding(model)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_neither_does_the_loss_of_a_large_vocabulary(smoothing):
    states, weight = (torch.randn(n, 8, device=META, requires_grad=True) for n in (300, 40_000))
    with OneDevice():
        targets = torch.ones(300, dtype=torch.long, device=META)
        projected_cross_entropy(states, weight, targets, Smoothing(smoothing)).backward()
    assert states.grad.is_meta and weight.grad.shape == weight.shape


def test_there_is_a_switch_of_every_kind():
    assert {switch.partition(":")[0] for switch in SWITCH_OF_EACH_KIND} == {kind.prefix for kind in INTERVENTIONS}


@pytest.mark.parametrize(
    ("name", "switch"),
    [
        *(("reverse", switch) for switch in SWITCH_OF_EACH_KIND),
        *(("reverse", f"mask:{kind}") for kind in ("padding", "cross")),
        *(("reverse", f"positions:encoder:{edit}") for edit in ("remove", "scale:0.5", "shuffle:1", "same:1,2")),
        *(("reverse-learned", f"positions:{edit}") for edit in ("encoder:shift:1", "decoder:shift:2")),
    ],
)
def test_a_recorded_pass_under_a_switch_stays_on_its_device(name, switch):
    lab = load(name)
    specs = lab.inspect("a b c d e", [parse_intervention(switch)]).interventions
    model, recorder = deepcopy(lab.model).to(META), Recorder()
    source = target = torch.ones(2, 7, dtype=torch.long, device=META)
    with OneDevice():
        model(source, target, tap=chain(compile_interventions(specs, model), recorder))
    assert recorder.recording and all(tensor.is_meta for tensor in recorder.recording.values())


FORGETFUL: list[tuple[str, Callable[..., Tensor]]] = [
    ("open_to", lambda config, kind, n_query, n_key, device: torch.ones(n_query, n_key, dtype=torch.bool).tril()),
    ("open_to", lambda config, kind, n_query, n_key, device: torch.ones((), dtype=torch.bool)),
    ("padding_mask", lambda ids, pad_id: (ids != pad_id)[torch.arange(3)]),
]
"""A mask, a number and an index, made on the CPU, as code does that forgets the device."""


@pytest.mark.parametrize(("name", "forgetful"), FORGETFUL)
def test_a_planted_tensor_on_another_device_is_caught(monkeypatch, name, forgetful):
    monkeypatch.setattr(transformer, name, forgetful)
    with pytest.raises((AssertionError, RuntimeError), match=r"mixes|device"):
        recorded_pass(random_model().to(META))


def test_reading_a_number_there_fails():
    with pytest.raises(RuntimeError):
        torch.ones(2, device=META).sum().item()
