"""Proofs of pictures: an honest one holds under every switch, and one corrupted number anywhere is found."""

import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import OTHER_SCORES, half_trained_model, random_model

from transformer.analysis.attention.weight_checks import check_weights
from transformer.analysis.checks import agree
from transformer.analysis.figure_checks import (
    check_comparison,
    check_padding_is_invisible,
    mask_by_rule,
    one_pass_log_probs,
)
from transformer.analysis.steps.output_checks import SlowReader
from transformer.config import ModelConfig
from transformer.decoding.greedy import Constraints, greedy, teacher_forced_log_probs
from transformer.inspection.inspection import read_attention
from transformer.interventions import (
    AblateHeads,
    DisableMask,
    MaskEntry,
    PatchActivation,
    SetAttentionRow,
    compile_interventions,
)
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Site

SOURCE = [5, 9, 4, 7, 11, 2]
KINDS = {kind: kind.where for kind in AttentionKind}
SWITCHES = {
    "none": (),
    "causal": (DisableMask("causal"),),
    "rows": (
        SetAttentionRow("encoder", 0, "self", 1, 2, "uniform"),
        SetAttentionRow("decoder", 1, "self", 0, 2, (1, 1, 2)),
        SetAttentionRow("decoder", 0, "cross", 3, 1, 4),
        MaskEntry("encoder", 0, "self", 2, 3),
    ),
    "copy": (
        PatchActivation(Site("decoder", 0, "self", "q"), None, ((0, 1),), "x"),
        AblateHeads("encoder", 0, "self", (1,)),
    ),
}


def recorded(model, switches, forced):
    """Weights and masks of each kind as the lab reads them off a decoding, and its output."""
    tap, limit = compile_interventions(switches, model), model.config.max_length
    steps = list(
        greedy(
            model,
            torch.tensor([SOURCE]),
            max_length=limit,
            constraints=Constraints(forced=forced),
            tap=tap,
            record=lambda site: site.tensor in ("weights", "mask"),
        )
    )
    n_encoder, n_decoder = model.config.n_encoder_layers, model.config.n_decoder_layers
    source, out = ("",) * len(SOURCE), ("",) * len(steps)
    recordings = [step.recording for step in steps]
    cached = not model.needs_recomputation(tap)
    return {
        "encoder_self": read_attention(recordings, AttentionKind.ENCODER_SELF, n_encoder, source, source, by_row=False),
        "decoder_self": read_attention(recordings, AttentionKind.DECODER_SELF, n_decoder, out, out, by_row=cached),
        "cross": read_attention(recordings, AttentionKind.CROSS, n_decoder, out, source, by_row=True),
    }, [int(step.tokens[0]) for step in steps]


def filled(model, switches):
    return tuple(s.filled(model, [8, 6, 2]) if isinstance(s, PatchActivation) else s for s in switches)


def checks_of(model, kind, switches, forced, attention):
    return check_weights(model, SOURCE, switches, forced, kind, attention)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SWITCHES)
def test_the_weights_of_an_honest_decoding_are_checked_and_a_corrupted_one_is_found(kind, name):
    model = half_trained_model()
    switches = filled(model, SWITCHES[name])
    forced = {0: 6, 1: 7, 2: 8}
    found, _ = recorded(model, switches, forced)
    checks = checks_of(model, kind, switches, forced, found[kind])
    assert len(checks) == 2 and all(check.holds for check in checks), checks
    corrupted = found[kind].weights.copy()
    corrupted[1, 2, 2, 0] += 0.01
    checks = checks_of(model, kind, switches, forced, replace(found[kind], weights=corrupted))
    assert not checks[0].holds and 0.002 < checks[0].measured < 0.0101, "less where large scores may move it more"
    wrong = found[kind].mask.copy()
    wrong[1, 2, 0] ^= True
    assert [check.holds for check in checks_of(model, kind, switches, forced, replace(found[kind], mask=wrong))] == [
        True,
        False,
    ]


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "none"])
@pytest.mark.parametrize("changes", [{}, *OTHER_SCORES, {"scale_scores": False}, {"causal_mask": False}])
def test_other_models_are_checked_too(positions, changes):
    if positions == "rotary" and "score" in changes:
        pytest.skip("a contradiction, which ModelConfig refuses")
    model = random_model(max_length=12, positions=positions, **changes)
    found, _ = recorded(model, (), {})
    for kind in KINDS:
        assert all(check.holds for check in checks_of(model, kind, (), {}, found[kind])), (kind, positions)


@pytest.mark.parametrize("factor", [4, 16])
def test_large_scores_are_rounded_and_checked_in_proportion(factor):
    """Without layer norm the vectors grow from layer to layer, and scores with their product."""
    model = random_model(max_length=12, norm="none", n_encoder_layers=3, n_decoder_layers=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("query.weight", "key.weight")):
                parameter *= factor
    found, _ = recorded(model, (), {})
    for kind in KINDS:
        checks = checks_of(model, kind, (), {}, found[kind])
        assert all(check.holds for check in checks), (kind, checks)
        corrupted = found[kind].weights.copy()
        corrupted[-1, 0, -1, 0] += 0.1
        assert not checks_of(model, kind, (), {}, replace(found[kind], weights=corrupted))[0].holds


@pytest.mark.parametrize("name", ["none", "causal", "rows"])
def test_an_outputs_probabilities_are_read_again(name):
    model, switches = half_trained_model(), SWITCHES[name]
    steps = list(greedy(model, torch.tensor([SOURCE]), max_length=12, tap=compile_interventions(switches, model)))
    target = [int(step.tokens[0]) for step in steps]
    own = np.array([float(step.log_probs[0, token]) for step, token in zip(steps, target, strict=True)])
    again = SlowReader(model, switches).log_probs(SOURCE, target)[np.arange(len(target)), target]
    np.testing.assert_allclose(np.exp(own), np.exp(again), atol=1e-4)


def test_a_pass_for_each_step_says_what_one_pass_says_under_a_causal_mask():
    model = half_trained_model()
    slow, one = (
        SlowReader(model, ()).log_probs(SOURCE, [7, 4, 2]),
        one_pass_log_probs(deepcopy(model).double(), SOURCE, [7, 4, 2], ()),
    )
    np.testing.assert_allclose(slow, one, atol=1e-12)
    ahead = SlowReader(model, [DisableMask("causal")]).log_probs(SOURCE, [7, 4, 2])
    assert (
        np.abs(ahead - one_pass_log_probs(deepcopy(model).double(), SOURCE, [7, 4, 2], [DisableMask("causal")])).max()
        > 1e-3
    )
    assert next(model.parameters()).dtype == torch.float32


def test_a_comparison_is_checked_and_each_wrong_number_is_found():
    model, specs = half_trained_model(), (AblateHeads("decoder", 0, "cross", (0, 1)),)
    target = [7, 4, 9, 2]
    p, q = (
        teacher_forced_log_probs(model, torch.tensor([SOURCE]), torch.tensor([target]), tap=tap)[0].double().numpy()
        for tap in (None, compile_interventions(specs, model))
    )
    each = np.arange(4)
    shown = {
        "before": np.exp(p[each, target]),
        "after": np.exp(q[each, target]),
        "kl_divergence": (np.exp(p) * (p - q)).sum(axis=-1),
    }
    assert all(check.holds for check in check_comparison(model, SOURCE, target, specs, **shown))
    for place, name in enumerate(shown):
        wrong = {**shown, name: shown[name] + np.array([0, 0.01, 0, 0])}
        holds = [check.holds for check in check_comparison(model, SOURCE, target, specs, **wrong)]
        assert holds == [i != place for i in range(3)]


def test_a_mask_is_written_by_its_rule():
    rule = mask_by_rule(ModelConfig(), AttentionKind.DECODER_SELF, [1, 5, 6], [1, 5, 0], off=())
    assert rule.tolist() == [[True, False, False], [True, True, False], [True, True, False]]


def test_a_batch_reads_as_its_sentences_do_alone():
    model = half_trained_model()
    sources, targets = [[5, 9, 4, 2], [7, 2]], [[4, 9, 2], [7, 2]]
    padded = torch.tensor([[5, 9, 4, 2], [7, 2, 0, 0]]), torch.tensor([[4, 9, 2], [7, 2, 0]])
    rows = teacher_forced_log_probs(model, *padded)
    losses = [-float(rows[i, range(len(t)), t].mean()) for i, t in enumerate(targets)]
    assert check_padding_is_invisible(model, sources, targets, np.array(losses))[0].holds
    assert not check_padding_is_invisible(model, sources, targets, np.array(losses) + 0.01)[0].holds


def test_what_is_no_number_or_of_another_shape_does_not_agree():
    assert not agree("x", [math.nan, 1], [0, 1], 1, "y").holds
    assert not agree("x", [1, 2, 3], [1, 2], 1, "y").holds
    assert agree("x", [math.nan, 1], [math.nan, 1], 0, "y").holds
    assert agree("x", [], [], 0, "y").holds
