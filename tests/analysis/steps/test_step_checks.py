"""Checks of a decoding step's figures: they hold of honest numbers, and of wrong ones they do not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_model

from transformer.analysis.steps.checks import check_contributions_of_parts, check_depths, check_sampling
from transformer.analysis.steps.logit_lens import logit_lens
from transformer.analysis.steps.samples import Sampling
from transformer.interventions import AblateHeads, AblateSublayer, DisableMask, SetAttentionRow

SOURCE, TARGET = [5, 9, 14, 7, 2], [6, 11, 4, 17, 9]
SWITCHES = [
    (),
    (
        AblateHeads("decoder", 1, "cross", (0, 2)),
        AblateSublayer("decoder", 1, "ffn"),
        AblateSublayer("decoder", 0, "self"),
    ),
    (DisableMask("causal"), SetAttentionRow("decoder", 2, "cross", 1, 3, 0)),
]
MODELS = [
    *({"norm": norm} for norm in ("post", "pre", "none")),
    {"residual": False},
    {"positions": "rotary"},
    {"output_bias": True},
]


def seen(switches, changes):
    model = random_model(**changes)
    return model, logit_lens(model, SOURCE, TARGET, 3, switches)


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("changes", MODELS, ids=str)
def test_inner_depths_are_those_of_shortened_decoders_and_wrong_ones_are_noticed(switches, changes):
    model, lens = seen(switches, changes)

    def holds(log_probs):
        return check_depths(model, SOURCE, TARGET[:3], switches, log_probs).holds

    right = lens.log_probs
    assert holds(right)
    assert not holds(np.concatenate([right[:1], right[:1], right[1:2], right[3:]]))  # one layer late
    assert not holds(np.concatenate([right[:1], right[:1], right[:1], right[3:]]))  # the embedding everywhere
    noise = torch.randn(2, right.shape[1]).double().log_softmax(dim=-1).numpy()
    assert not holds(np.concatenate([right[:1], noise, right[3:]]))


def test_a_final_norm_at_the_last_depth_only_is_noticed():
    model, lens = seen((), {"norm": "pre"})
    bare = model.requires_grad_(False)
    norm, bare.decoder.norm = bare.decoder.norm, None
    without = logit_lens(bare, SOURCE, TARGET, 3).log_probs
    bare.decoder.norm = norm
    log_probs = np.concatenate([without[:-1], lens.log_probs[-1:]])
    assert not check_depths(model, SOURCE, TARGET[:3], (), log_probs).holds


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("changes", MODELS, ids=str)
def test_contributions_are_those_carried_back_and_shuffled_ones_are_noticed(switches, changes):
    model, lens = seen(switches, changes)
    found = lens.contributions(model, 4, 9)

    def holds(shown):
        return check_contributions_of_parts(model, SOURCE, TARGET[:3], switches, 4, 9, shown).holds

    assert holds(found)
    parts, values = zip(*found, strict=True)
    assert not holds(list(zip(parts, (*values[1:], values[0]), strict=True)))
    assert not holds(found[1:])


SETTINGS = [
    Sampling(top_k=3),
    Sampling(top_p=0.5),
    Sampling(min_p=0.2),
    Sampling(temperature=1.7, top_k=9, top_p=0.8, min_p=0.05),
    Sampling(temperature=0.3),
]


def _holds(log_probs, sampling, drawn_from):
    return all(check.holds for check in check_sampling(log_probs.astype(float), sampling, drawn_from, pad_id=0))


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_tokens_kept_are_counted_again_and_one_more_or_less_is_noticed(sampling):
    log_probs = (2 * torch.randn(23)).log_softmax(dim=-1).numpy()
    drawn = sampling.reshape(log_probs, never=0)
    assert _holds(log_probs, sampling, drawn)
    less = drawn.copy()
    less[np.flatnonzero(np.isfinite(drawn))[0]] = -np.inf
    assert not _holds(log_probs, sampling, less)
    if np.isfinite(drawn).sum() < 22:
        uncut = replace(sampling, top_k=0, top_p=1.0, min_p=0.0).reshape(log_probs, never=0)
        assert not _holds(log_probs, sampling, uncut)


def test_tokens_without_any_chance_that_double_precision_can_hold_are_checked_too():
    log_probs = torch.linspace(0, -9_000, 23).log_softmax(dim=-1).numpy()
    for sampling in (Sampling(), Sampling(temperature=0.3), Sampling(top_k=20)):
        drawn = sampling.reshape(log_probs, never=0)
        assert _holds(log_probs, sampling, drawn)
        drawn[np.flatnonzero(np.isfinite(drawn))[-1]] += 100
        assert not _holds(log_probs, sampling, drawn)


def test_top_4_where_3_were_asked_for_is_noticed():
    log_probs = torch.randn(23).log_softmax(dim=-1).numpy()
    assert not _holds(log_probs, Sampling(top_k=3), Sampling(top_k=4).reshape(log_probs, never=0))
