"""Proofs notice what is wrong, and effects are what a comparison measures."""

import numpy as np
import pytest
import torch
from random_models import random_ids, random_model

from transformer.analysis.checks import check_decoding
from transformer.analysis.heads.importance import head_average, head_effects, output_effects
from transformer.decoding.greedy import greedy, teacher_forced_log_probs
from transformer.interventions import AblateHeads, DisableMask, compile_interventions
from transformer.model import attention


def decoded(model, switches=()):
    """Decodes one sentence and returns the arguments for `check_decoding`."""
    source = random_ids(1, 6)
    tap = compile_interventions(switches, model)
    steps = list(greedy(model, source, max_length=10, tap=tap))
    target = [int(step.tokens[0]) for step in steps]
    return dict(
        source=source[0].tolist(),
        target=target,
        log_probs=torch.cat([step.log_probs for step in steps]).numpy(),
        switches=tuple(switches),
    )


@pytest.fixture
def model():
    return random_model(max_length=10)


@pytest.mark.parametrize("switches", [(), (AblateHeads("decoder", 1, "cross", (0, 2)),), (DisableMask("causal"),)])
def test_an_honest_decoding_passes_every_check(model, switches):
    checks = check_decoding(model, **decoded(model, switches))
    assert len(checks) == 3
    assert all(check.holds for check in checks), checks


def test_what_rounding_does_not_explain_is_found(model):
    result = decoded(model)
    result["log_probs"] = result["log_probs"] + np.float32(5e-4)
    check = check_decoding(model, **result)[1]
    assert not check.holds and check.measured < 1e-4


def test_a_fused_path_that_is_off_by_little_is_found(model, monkeypatch):
    fused = attention.fused_attention
    monkeypatch.setattr(attention, "fused_attention", lambda *given, **named: fused(*given, **named) * (1 + 1e-4))
    check = check_decoding(model, **decoded(model))[-1]
    assert "fused" in check.claim and not check.holds and check.measured < 1e-3


def test_an_output_that_the_model_does_not_write_is_found(model):
    result = decoded(model)
    result["target"][0] = 4 if result["target"][0] != 4 else 5
    check = check_decoding(model, **result)[0]
    assert not check.holds and check.measured == 1


def test_probabilities_of_another_pass_are_found(model):
    result = decoded(model)
    result["log_probs"] = result["log_probs"] + np.float32(0.1)
    assert not check_decoding(model, **result)[1].holds


def test_a_heads_effect_is_the_shift_that_switching_it_off_makes(model):
    source, target = random_ids(1, 6), random_ids(1, 4)
    effects = head_effects(model, source[0].tolist(), target[0].tolist(), 2)
    assert len(effects) == (2 + 3 + 3) * 4
    assert [abs(e.shift) for e in effects] == sorted((abs(e.shift) for e in effects), reverse=True)
    chosen = int(target[0, 2])
    tap = compile_interventions([effects[0].switch], model)
    before = teacher_forced_log_probs(model, source, target)[0, 2, chosen].double().exp()
    after = teacher_forced_log_probs(model, source, target, tap=tap)[0, 2, chosen].double().exp()
    assert effects[0].shift == pytest.approx(float(after - before), abs=1e-6)


def test_a_step_that_does_not_exist_is_refused(model):
    with pytest.raises(ValueError, match="step 9 does not exist: the output has steps 0 to 2"):
        head_effects(model, [4, 5, 2], [4, 5, 2], 9)


def test_what_a_head_is_needed_for_is_what_greedy_decoding_without_it_writes(model):
    source = random_ids(1, 6)

    def written(*switches):
        steps = greedy(model, source, max_length=10, tap=compile_interventions(switches, model))
        return [int(step.tokens[0]) for step in steps]

    target = written()
    effects = output_effects(model, source[0].tolist(), target)
    assert len(effects) == (2 + 3 + 3) * 4
    assert [e.instead is None for e in effects] == sorted(e.instead is None for e in effects)
    for effect in effects:
        without = written(effect.switch)
        if effect.instead is None:
            assert without == target
        else:
            assert without[: effect.step] == target[: effect.step]
            assert without[effect.step] == effect.instead != target[effect.step]


def test_the_average_of_heads_is_a_distribution():
    weights = torch.rand(2, 4, 5, 6).softmax(dim=-1).numpy()
    average = head_average(weights, 1)
    assert average.dtype == np.float32
    np.testing.assert_allclose(average, weights[1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(average.sum(axis=-1), 1, atol=1e-6)
