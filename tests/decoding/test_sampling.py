"""Sampling: what is drawn follows the distribution that was asked for, and the same seed draws the same."""

import pytest
import torch
from random_models import half_trained_model, random_model, reversals

from transformer.analysis.steps.samples import Sampling
from transformer.decoding.greedy import FREE, Constraints, greedy, outputs, teacher_forced_log_probs
from transformer.decoding.sampling import reshaped, sample
from transformer.interventions import AblateHeads, DisableMask, compile_interventions

SETTINGS = [
    dict(),
    dict(temperature=0.5),
    dict(temperature=2.0, top_k=5),
    dict(top_p=0.8),
    dict(min_p=0.2),
    dict(temperature=1.3, top_k=9, top_p=0.9, min_p=0.05),
]


def draw(model, source, **options):
    steps = list(sample(model, source, **{"max_length": 12, "seed": 1, **options}))
    return steps, torch.stack([step.tokens for step in steps], dim=1)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_frequencies_follow_the_distribution(settings):
    """Chi-square of 20,000 first tokens against what the model says, reshaped by hand; 1 in 1,000 would fail by lot."""
    model = random_model(vocab_size=23)
    n = 20_000
    source = torch.tensor([[5, 9, 2]]).expand(n, -1)
    steps, tokens = draw(model, source, max_length=1, **settings)
    log_probs = steps[0].log_probs[0].double()
    expected = reference(log_probs, **settings) * n
    counts = torch.bincount(tokens[:, 0], minlength=23).double()
    assert (counts[expected == 0] == 0).all()
    common = expected >= 5
    observed = torch.cat((counts[common], counts[~common].sum()[None]))
    wanted = torch.cat((expected[common], expected[~common].sum()[None]))
    real = wanted > 0
    statistic = ((observed - wanted)[real] ** 2 / wanted[real]).sum().item()
    freedom = int(real.sum()) - 1
    assert freedom >= 2
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3  # Wilson, Hilferty


def reference(log_probs, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """The distribution in plain Python; padding is never written."""
    weights = {i: p ** (1 / temperature) for i, p in enumerate(log_probs.exp().tolist()) if i != 0}
    ranked = sorted(weights, key=lambda i: -weights[i])
    ranked = ranked[:top_k] if top_k else ranked
    total, kept, mass = sum(weights[i] for i in ranked), [], 0.0
    for i in ranked:
        if kept and mass / total >= top_p:
            break
        kept.append(i)
        mass += weights[i]
    kept = [i for i in kept if weights[i] >= min_p * weights[ranked[0]]]
    out = torch.zeros(len(log_probs), dtype=torch.float64)
    for i in kept:
        out[i] = weights[i] / sum(weights[i] for i in kept)
    return out


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_tokens_are_of_the_distribution_made_by_hand(within, settings):
    model, (source, _) = half_trained_model(torch.float64), reversals(4)
    steps, tokens = draw(model, source, **settings)
    for step in steps:
        allowed = FREE.allowed(step.log_probs, step.index, None, pad_id=0, eos_id=model.config.eos_id)
        offered = reshaped(allowed, **settings)
        assert torch.isfinite(offered.gather(1, step.tokens[:, None])[step.tokens != 0]).all()
        for row in step.rows.tolist():
            within(offered[row].exp(), reference(step.log_probs[row], **settings), 1e-9)
    real = tokens != 0
    log_probs = torch.stack([step.log_probs for step in steps], dim=1)
    within(log_probs[real], teacher_forced_log_probs(model, source, tokens)[real], 1e-12)


def test_the_same_seed_draws_the_same_and_another_does_not():
    model, (source, _) = half_trained_model(), reversals(16)
    _, first = draw(model, source)
    torch.rand(3)  # the global generator plays no part
    _, again = draw(model, source)
    _, other = draw(model, source, seed=2)
    assert torch.equal(first, again)
    assert first.shape != other.shape or not torch.equal(first, other)


@pytest.mark.parametrize("switches", [(), (AblateHeads("decoder", 0, "self", (1,)), DisableMask("causal"))], ids=str)
def test_cached_equals_uncached_and_recorded_equals_unrecorded(within, switches):
    model, (source, _) = half_trained_model(torch.float64), reversals(8)
    tap = compile_interventions(switches, model)
    steps, tokens = draw(model, source, tap=tap)
    for options in ({"cache": False}, {"record": lambda site: True}):
        other_steps, other = draw(model, source, tap=tap, **options)
        assert torch.equal(tokens, other)
        alive = torch.ones(8, dtype=torch.bool)
        for a, b in zip(steps, other_steps, strict=True):
            within(a.log_probs[alive], b.log_probs[alive], 1e-12)
            alive = ~a.finished


@pytest.mark.parametrize("settings", [dict(top_k=1), dict(temperature=0.01, top_p=0.5), dict(min_p=1.0)], ids=str)
def test_sampling_with_one_token_left_is_greedy(settings):
    model, (source, _) = half_trained_model(), reversals(8)
    assert outputs(model, sample(model, source, max_length=12, seed=5, **settings)) == outputs(
        model, greedy(model, source, max_length=12)
    )


def test_constraints_hold_for_every_sample():
    model, (source, _) = half_trained_model(), reversals(16)
    rules = Constraints(forced={0: 9}, min_length=5, no_repeat_ngram=1)
    _, tokens = draw(model, source, constraints=rules, temperature=3.0)
    assert (tokens[:, 0] == 9).all() and (tokens[:, :4] != 2).all()
    for row in tokens.tolist():
        written = [token for token in row if token != 0]
        assert len(set(written)) == len(written)


def test_a_small_temperature_does_not_overflow(within):
    log_probs = torch.tensor([[-500.0, -1.0, -0.5, -torch.inf]])
    found = reshaped(log_probs, temperature=0.01).exp()
    within(found, torch.tensor([[0.0, 0.0, 1.0, 0.0]]), 1e-6)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(temperature=0), "temperature (0) must be at least 0.01: for the most probable"),
        (dict(temperature=-1.0), "temperature (-1.0) must be at least 0.01"),
        (dict(temperature=float("nan")), "temperature (nan) must be a number"),
        (dict(top_k=-1), "top_k (-1) must not be negative"),
        (dict(top_p=0.0), "top_p (0.0) must be above 0"),
        (dict(top_p=1.1), "top_p (1.1) must be at most 1"),
        (dict(min_p=-0.1), "min_p (-0.1) must not be negative"),
    ],
)
def test_what_leaves_no_distribution_is_refused(settings, sentence):
    with pytest.raises(ValueError) as refusal:
        draw(random_model(), torch.tensor([[4, 2]]), **settings)
    assert str(refusal.value).startswith(sentence)
    with pytest.raises(ValueError) as refusal:
        Sampling(**settings)
    assert str(refusal.value).startswith(sentence)
