"""A copy in double precision computes what the model computes, and nothing done to one reaches the other."""

from copy import deepcopy

import pytest
import torch
from random_models import random_convolutional, random_model, random_recurrent

from transformer.model.precise import in_double

MODELS = {
    "transformer": random_model,
    "separate embeddings": lambda: random_model(tie_embeddings=False),
    "recurrent": lambda: random_recurrent(attention="additive"),
    "convolutional": random_convolutional,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=list(MODELS))
@torch.no_grad()
def test_the_copy_is_the_model_in_double_precision(make):
    model, ids = make(), torch.tensor([[4, 5, 6, 7]])
    before = deepcopy(model.state_dict())
    copy, expected = in_double(model), deepcopy(model).double()
    assert torch.equal(copy(ids, ids), expected(ids, ids)) and copy(ids, ids).dtype == torch.float64
    assert len(list(copy.parameters())) == len(list(model.parameters()))  # what is tied stays tied
    for parameter in copy.parameters():
        parameter.add_(1)
    assert all(torch.equal(now, before[name]) for name, now in model.state_dict().items())
    assert copy.training == model.training


def test_a_hook_on_a_part_of_the_copy_would_be_the_models_too():
    """Why no part of the library may register one: test_architecture.py reads every source for that."""
    model = random_model()
    in_double(model).encoder.register_forward_pre_hook(lambda *_: None)
    assert model.encoder._forward_pre_hooks
