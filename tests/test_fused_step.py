"""A training step says that it changed the weights: what was laid out of them for decoding is laid out again."""

from copy import deepcopy

import torch
from random_models import ragged_batch, random_model

from transformer.config import TrainConfig
from transformer.decoding import translate_ids
from transformer.state import build_optimizer


def test_after_a_step_the_new_weights_translate():
    model = random_model()
    source, _ = ragged_batch()
    mask = source != 0
    optimizer = build_optimizer(model, TrainConfig(learning_rate=0.5))
    before = translate_ids(model, source, mask, max_length=8)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    after = translate_ids(model, source, mask, max_length=8)
    assert after == translate_ids(deepcopy(model), source, mask, max_length=8) != before
