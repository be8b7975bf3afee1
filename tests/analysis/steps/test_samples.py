"""Counted samples of one sentence."""

import pytest
import torch
from random_models import half_trained_model

from transformer.analysis.steps.samples import Sampling, draw_samples
from transformer.decoding.greedy import teacher_forced_log_probs


def test_every_sample_is_counted_and_scored_by_the_model():
    model, source = half_trained_model(), [5, 9, 7, 2]
    found = draw_samples(model, source, (), Sampling(temperature=1.5), n=60, seed=1)
    assert sum(drawn.count for drawn in found) == 60 and len({drawn.ids for drawn in found}) == len(found) > 5
    assert [drawn.count for drawn in found] == sorted((drawn.count for drawn in found), reverse=True)
    assert found == draw_samples(model, source, (), Sampling(temperature=1.5), n=60, seed=1)
    for drawn in found[:8]:
        target = torch.tensor([drawn.ids])
        log_probs = teacher_forced_log_probs(model, torch.tensor([source]), target)
        assert drawn.log_prob == pytest.approx(log_probs.gather(2, target[:, :, None]).sum().item(), abs=1e-4)
