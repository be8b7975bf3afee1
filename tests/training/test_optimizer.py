"""Muon against torch's own, against singular values, and what it leaves to Adam."""

from dataclasses import replace
from typing import get_args

import pytest
import torch
from random_models import randomise
from tiny_runs import CPU, MODEL, settings, state
from torch import nn

from transformer.config import ConvolutionalConfig, RecurrentConfig, ScoreKind
from transformer.model.families import count_hidden
from transformer.training.optimizer import Muon, build_optimizer, optimizer_tensors, orthogonalised
from transformer.training.state import new_state

MUON = settings(optimizer="muon", learning_rate=0.01)
HIDDEN = ("query", "key", "value", "output", "inner", "outer")


@pytest.mark.parametrize("shape", [(8, 8), (8, 32)])
def test_an_orthogonalised_matrix_keeps_its_singular_vectors_and_all_values_are_near_one(shape):
    matrix = torch.randn(shape, dtype=torch.float64)
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    found = left.T @ orthogonalised(matrix[None])[0] @ right.T
    assert 0.6 < found.diagonal().min() and found.diagonal().max() < 1.3
    assert (found - found.diagonal().diag()).abs().max() < 1e-9


def test_a_matrix_of_zeros_stays_one():
    assert torch.equal(orthogonalised(torch.zeros(2, 4, 8)), torch.zeros(2, 4, 8))


def random_gradients(matrices, step):
    draws = torch.Generator().manual_seed(step)
    for matrix in matrices:
        matrix.grad = torch.randn(matrix.shape, generator=draws)


def test_five_steps_are_those_of_torchs_muon():
    """Its iteration runs in bfloat16, which is what the tolerance is for: a step has entries of about 0.002."""
    shapes = [(16, 16), (64, 16), (16, 64), (16, 16)]
    ours, theirs = ([nn.Parameter(torch.ones(shape)) for shape in shapes] for _ in range(2))
    muon = Muon(ours, [{"params": [nn.Parameter(torch.ones(3))]}], lr=0.01, momentum=0.9, weight_decay=0.1)
    torchs = torch.optim.Muon(theirs, lr=0.01, momentum=0.9, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for step in range(5):
        random_gradients(ours, step)
        random_gradients(theirs, step)
        muon.step()
        torchs.step()
    for mine, other in zip(ours, theirs, strict=True):
        moved = (other - 1).abs().mean()
        assert (mine - other).abs().max() < 0.05 * moved


def test_the_rate_that_is_set_for_a_step_is_the_rate_of_all_parameters():
    model = state(MUON).model
    optimizer = build_optimizer(model, MUON)
    before = {name: value.clone() for name, value in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())


@pytest.mark.parametrize("score", get_args(ScoreKind))
def test_muon_steps_the_matrices_of_the_layers_and_adam_all_else(score):
    model = new_state(replace(MODEL, score=score, positions="learned", tie_output=False), MUON, CPU).model
    kept = optimizer_tensors(build_optimizer(model, MUON), model)
    matrices = [name for name, _ in model.named_parameters() if name.split(".")[-2] in HIDDEN and name.endswith("t")]
    assert sorted(kept) == sorted(f"muon.momentum.{name}" for name in matrices)
    assert len(matrices) == 4 + 2 + 8 + 2


@pytest.mark.parametrize(
    ("config", "hidden"),
    [
        (
            RecurrentConfig(vocab_size=24, d_model=16, attention="additive"),
            ["attention.key", "attention.query", "combine", "start"],
        ),
        (
            ConvolutionalConfig(vocab_size=24, d_model=16, separable=True, n_encoder_layers=1, n_decoder_layers=1),
            ["combine", "decoder.0.convolution.mix", "decoder.0.query", "encoder.0.convolution.mix"],
        ),
    ],
    ids=["rnn", "conv"],
)
def test_of_other_families_muon_leaves_gates_windows_and_score_vectors_to_adam(config, hidden):
    model = new_state(config, MUON, CPU).model
    optimizer = build_optimizer(model, MUON)
    kept = [name.removeprefix("muon.momentum.") for name in optimizer_tensors(optimizer, model)]
    assert sorted(kept) == [f"{name}.weight" for name in hidden]
    stepped = [model.get_parameter(name) for name in kept]
    assert sum(matrix.numel() for matrix in stepped) == count_hidden(config)
    stepped += [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(map(id, stepped)) == sorted(map(id, model.parameters()))  # each by one of the two, and once


def test_with_muon_weight_decay_shrinks_every_matrix_by_the_rate_and_leaves_gains_and_biases(within):
    config = replace(MUON, learning_rate=0.1, weight_decay=0.5)
    model = state(config).model
    randomise(model)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # so that a step does nothing but decay
    build_optimizer(model, config).step()
    for name, value in model.named_parameters():
        within(value.detach(), before[name] * (1 - 0.1 * 0.5 if value.dim() > 1 else 1.0), 1e-6)


def test_muon_averages_gradients_by_the_momentum_of_the_run(within):
    config = replace(MUON, momentum=0.6, beta1=0.7, beta2=0.8)
    model = state(config).model
    optimizer, matrix = build_optimizer(model, config), model.encoder.layers[0].feed_forward.inner.weight
    expected = torch.zeros_like(matrix)
    for step in range(3):
        random_gradients([matrix], step)
        expected = 0.6 * expected + 0.4 * matrix.grad
        optimizer.step()
    within(optimizer.state[matrix]["momentum"], expected, 1e-6)


def test_a_parameter_without_a_gradient_stays_as_it_is():
    ours = [nn.Parameter(torch.ones(4, 4)) for _ in range(2)]
    muon = Muon(ours, [{"params": [nn.Parameter(torch.ones(3))]}], lr=0.01, momentum=0.9, weight_decay=0.1)
    random_gradients(ours[:1], 0)
    muon.step()
    assert torch.equal(ours[1], torch.ones(4, 4)) and not torch.equal(ours[0], torch.ones(4, 4))


def test_a_model_without_layers_is_told_to_take_adam():
    model = new_state(replace(MODEL), MUON, CPU).model
    model.encoder, model.decoder = nn.Identity(), nn.Identity()
    with pytest.raises(ValueError, match="this model has none: take adamw"):
        build_optimizer(model, MUON)
