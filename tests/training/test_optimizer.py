"""Muon against torch's own, against singular values, and what it leaves to Adam."""

from dataclasses import replace

import pytest
import torch
from tiny_runs import CPU, MODEL, settings, state
from torch import nn

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


@pytest.mark.parametrize("score", ["dot", "additive"])
def test_muon_steps_the_matrices_of_the_layers_and_adam_all_else(score):
    model = new_state(replace(MODEL, score=score, positions="learned", tie_output=False), MUON, CPU).model
    kept = optimizer_tensors(build_optimizer(model, MUON), model)
    matrices = [name for name, _ in model.named_parameters() if name.split(".")[-2] in HIDDEN and name.endswith("t")]
    assert sorted(kept) == sorted(f"muon.momentum.{name}" for name in matrices)
    assert len(matrices) == 4 + 2 + 8 + 2


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
