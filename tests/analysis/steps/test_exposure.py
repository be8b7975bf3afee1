"""Teacher-forced against free-running: the same until the first divergence, and counted by position."""

import math

import numpy as np
import pytest
import tiny_runs
import torch
from random_models import half_trained_model, random_model, reversals

from transformer.analysis.steps.exposure_bias import exposure_bias, reference_losses
from transformer.analysis.steps.output_checks import SlowReader, check_exposure, check_reference_losses
from transformer.config import ModelConfig
from transformer.decoding.greedy import Constraints, greedy, teacher_forced_log_probs
from transformer.model.transformer import Transformer


@pytest.fixture(scope="module")
def model():
    return half_trained_model(torch.float64)


def sentences():
    """Sources and their right outputs, one at a time."""
    for source, target in zip(*reversals(12), strict=True):
        yield source[source != 0].tolist(), target[target != 0].tolist()[1:]


def test_both_losses_agree_up_to_the_divergence_and_there_the_writing_differs(model):
    diverged = 0
    for source, reference in sentences():
        seen = reference_losses(model, source, reference)
        cut = len(reference) if seen.divergence is None else seen.divergence
        assert seen.reference[:cut] == seen.written[:cut]
        np.testing.assert_allclose(seen.free_loss[: cut + 1], seen.forced_loss[: cut + 1], atol=1e-12)
        if seen.divergence is not None and cut < len(seen.written):
            assert seen.written[cut] == seen.likeliest[cut] != reference[cut]
            diverged += 1
        assert np.isnan(seen.free_loss[len(seen.written) :]).all()
    assert diverged > 3


def test_the_loss_of_every_position_is_that_of_its_own_prefix(model):
    source, reference = next(pair for pair in sentences() if reference_losses(model, *pair).divergence == 0)
    seen = reference_losses(model, source, reference)
    for position, token in enumerate(reference[: len(seen.written)]):
        for prefix, lost in ((reference, seen.forced_loss), (seen.written, seen.free_loss)):
            row = teacher_forced_log_probs(model, torch.tensor([source]), torch.tensor([[*prefix[:position], token]]))
            assert lost[position] == pytest.approx(-row[0, position, token].item(), abs=1e-12)


def test_a_reference_past_the_model_s_length_is_refused(model):
    with pytest.raises(ValueError, match="the reference has 65 tokens, its end mark included, where the model writes"):
        reference_losses(model, [5, 2], [4] * 64 + [2])


@pytest.fixture(scope="module")
def measured():
    torch.manual_seed(0)
    model = Transformer(ModelConfig(**{**vars(tiny_runs.MODEL), "vocab_size": tiny_runs.tokenizer().vocab_size})).eval()
    told: list[float] = []
    pairs = tiny_runs.corpus().validation
    return model, exposure_bias(model, pairs, tiny_runs.tokenizer(), batch_tokens=64, tell=told.append), told


def test_every_position_counts_the_sentences_that_have_it(measured):
    _, found, told = measured
    pairs, tokenizer = tiny_runs.corpus().validation, tiny_runs.tokenizer()
    lengths = [len(tokenizer.encode(pair.target)) + 1 for pair in pairs]
    assert found.n_pairs == len(pairs) and told[-1] == 1 and told == sorted(told) and len(told) > 2
    for at in found.positions:
        assert at.count == sum(length > at.position for length in lengths) >= 5
        assert 0 < at.going <= at.count and 0 <= at.free_right <= at.going
    assert [at.position for at in found.positions] == list(range(len(found.positions)))


def test_the_numbers_of_a_position_are_those_of_its_sentences(measured):
    model, found, _ = measured
    tokenizer = tiny_runs.tokenizer()
    seen = [
        reference_losses(model, [*tokenizer.encode(pair.source), 2], [*tokenizer.encode(pair.target), 2])
        for pair in tiny_runs.corpus().validation
    ]
    for at in found.positions:
        here = [s for s in seen if len(s.reference) > at.position]
        going = [s for s in here if not math.isnan(s.free_loss[at.position])]
        bias = [float(s.free_loss[at.position]) - float(s.forced_loss[at.position]) for s in going]
        assert at.bias == pytest.approx(np.mean(bias), abs=1e-5)
        assert at.bias_error == pytest.approx(1.96 * np.std(bias, ddof=1) / len(bias) ** 0.5, rel=1e-3, abs=1e-6)
        assert at.forced_right == sum(s.likeliest[at.position] == s.reference[at.position] for s in here)
        own = [s.written[at.position] for s in going]
        assert at.free_right == sum(a == s.reference[at.position] for a, s in zip(own, going, strict=True))
    assert abs(found.positions[0].bias) < 1e-6, "nothing was written before the first token"


def test_padding_is_never_the_most_probable_token():
    """Nothing was written before the first token, so there both ways must count the same tokens as right."""
    model = random_model(
        vocab_size=tiny_runs.tokenizer().vocab_size, output_bias=True, tie_output=False, dtype=torch.float64
    )
    with torch.no_grad():
        model.projection.bias[model.config.pad_id] = 100.0
    pairs, tokenizer = tiny_runs.corpus().validation, tiny_runs.tokenizer()
    seen = [reference_losses(model, [*tokenizer.encode(p.source), 2], [*tokenizer.encode(p.target), 2]) for p in pairs]
    assert all(s.likeliest[0] == s.written[0] and model.config.pad_id not in s.likeliest for s in seen)
    for s, pair in zip(seen, pairs, strict=True):
        checks = check_reference_losses(SlowReader(model, ()), [*tokenizer.encode(pair.source), 2], s)
        assert all(check.holds for check in checks)
    found = exposure_bias(model, pairs, tokenizer)
    assert all(check.holds for check in check_exposure(SlowReader(model, ()), pairs, tokenizer, found.positions))
    assert found.positions[0].forced_right == found.positions[0].free_right > 0


def test_under_constraints_free_running_is_greedy(model):
    source, reference = next(sentences())
    steps = list(greedy(model, torch.tensor([source]), max_length=64, constraints=Constraints()))
    assert reference_losses(model, source, reference).written == tuple(int(step.tokens[0]) for step in steps)
