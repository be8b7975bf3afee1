"""The decoder in fewer calls against the model's own decoder, whose every step a tap may read."""

import gc
import weakref
from copy import deepcopy

import pytest
import torch
from random_models import random_ids, random_model

from transformer import plain_decoder
from transformer.config import TrainConfig
from transformer.decoding import translate_ids
from transformer.plain_decoder import PlainDecoder
from transformer.state import build_optimizer

KINDS = [
    *({"positions": kind} for kind in ("sinusoidal", "learned", "none", "rotary", "alibi")),
    *({"norm": norm} for norm in ("pre", "none")),
    *({"activation": name} for name in ("gelu", "swish")),
    {"residual": False},
    {"scale_scores": False},
    {"output_bias": True, "tie_output": False},
]


def sources() -> tuple[torch.Tensor, torch.Tensor]:
    """Three sources of several lengths, padded; of the last nothing may be seen at all."""
    source = random_ids(3, 9)
    source[1, 4:] = 0
    real = source != 0
    real[2] = False
    return source, real


@torch.no_grad()
@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_logits_are_those_of_the_model(within, changes):
    model = random_model(torch.float64, **changes)
    (source, real), target = sources(), random_ids(3, 6)
    memory = model.encode(source, real)
    expected = model.project(model.decode(target, memory, real))
    plain = PlainDecoder(model, memory, real, capacity=6)
    for position in range(6):
        within(plain.logits(target[:, position]), expected[:, position], 1e-12)
    assert plain.length == 6


@torch.no_grad()
@pytest.mark.parametrize("per_source", [1, 3])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_rows_change_places_and_sources_leave(within, per_source, positions):
    model = random_model(torch.float64, positions=positions)
    source, real = sources()
    memory = model.encode(source, real)
    plain = PlainDecoder(model, memory, real, capacity=8, per_source=per_source)
    rows = torch.arange(3).repeat_interleave(per_source)
    target = torch.zeros(len(rows), 0, dtype=torch.long)
    last = torch.arange(per_source).flip(0)
    for kept, same in ((torch.cat([last + per_source * i for i in range(3)]), True), (last + 2 * per_source, False)):
        for _ in range(3):
            target = torch.cat((target, random_ids(len(rows), 1)), dim=1)
            expected = model.project(model.decode(target, memory[rows], real[rows]))[:, -1]
            within(plain.logits(target[:, -1]), expected, 1e-12)
        rows, target = rows[kept], target[kept]
        plain.rows(kept, same_sources=same)
    target = torch.cat((target, random_ids(len(rows), 1)), dim=1)
    within(plain.logits(target[:, -1]), model.project(model.decode(target, memory[rows], real[rows]))[:, -1], 1e-12)


def test_changed_weights_count_at_once():
    model, other, (source, real) = random_model().requires_grad_(False), random_model(), sources()
    before = translate_ids(model, source, real, max_length=8)
    model.load_state_dict(other.state_dict())
    after = translate_ids(model, source, real, max_length=8)
    assert after == translate_ids(other, source, real, max_length=8) != before


def test_a_step_of_training_counts_at_once():
    """A fused step leaves no trace in the versions of the weights."""
    model, (source, real) = random_model(), sources()
    optimizer = build_optimizer(model, TrainConfig(learning_rate=0.5))
    before = translate_ids(model, source, real, max_length=8)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    after = translate_ids(model, source, real, max_length=8)
    assert after == translate_ids(deepcopy(model), source, real, max_length=8) != before


def test_weights_are_laid_out_once_and_go_with_their_model():
    model, (source, real) = random_model().requires_grad_(False), sources()
    translate_ids(model, source, real, max_length=3)
    laid_out = weakref.ref(plain_decoder._KEPT[model][2])
    translate_ids(model, source, real, max_length=3)
    assert plain_decoder._KEPT[model][2] is laid_out()
    del model
    gc.collect()
    assert laid_out() is None
