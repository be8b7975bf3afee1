"""The checks of a pass against the decoding that wrote its output: numbers round as far as their scores are large."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from page_models import save_model
from random_models import random_model

from transformer.analysis.trace.checks import check_probabilities_written, check_steps, check_weights_written
from transformer.checkpoints.store import load_checkpoint
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Site

SCORES = Site("decoder", 2, "cross", "scores")


def with_large_scores(**sizes):
    """A model without layer norm, whose scores and logits are some hundreds."""
    model = random_model(norm="none", tie_output=False, **sizes)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("query.weight", "projection.weight")):
                parameter.mul_(3)
    return model


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "large"
    save_model(folder, with_large_scores)
    return Lab(load_checkpoint(folder))


def test_weights_and_probabilities_of_large_scores_are_those_that_wrote_the_output(lab):
    seen = lab.inspect("a b c d")
    trace = lab.trace(seen)
    weights = trace.taken[replace(SCORES, tensor="weights")].numpy()
    apart = np.abs(weights - seen.cross.weights[2]).max()
    assert trace.taken[SCORES].abs().max() > 200 and apart > 1e-5, "more than numbers of size 1 deviate"
    assert check_weights_written(lab.model, trace, seen, [AttentionKind.CROSS]).holds
    assert check_probabilities_written(lab.model, trace, seen).holds
    assert check_steps(lab.model, trace).holds


def test_other_weights_and_probabilities_are_noticed_all_the_same(lab):
    seen = lab.inspect("a b c d")
    trace = lab.trace(seen)
    other = lab.trace(lab.inspect("a b d c"))
    assert not check_weights_written(lab.model, other, seen, [AttentionKind.CROSS]).holds
    log_probs = seen.log_probs + np.log(0.9)
    assert not check_probabilities_written(lab.model, trace, replace(seen, log_probs=log_probs)).holds
