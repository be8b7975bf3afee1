"""A comparison against slow recomputations: probabilities, KL divergence, attention on the same prefixes, alignment."""

import math

import numpy as np
import pytest
import torch
from page_models import REVERSE

from transformer.inspection.token_alignment import align
from transformer.interventions import AblateHeads, DisableMask, MeanAblateHeads, compile_interventions
from transformer.lab import AttentionKind, load
from transformer.model.taps import Recorder, chain

TEXT = "a b c d e"
SWITCHES = [
    AblateHeads("decoder", 0, "cross", (0, 2)),
    MeanAblateHeads("encoder", 0, "self", (1,)),
    DisableMask("causal"),
]


@pytest.fixture(scope="module")
def lab(untrained_runs):
    return load(str(untrained_runs / REVERSE))


@pytest.fixture(scope="module")
def comparison(lab):
    return lab.compare(TEXT, SWITCHES)


def read_again(lab, comparison, switches):
    """The next token's logits after each prefix of the original output, in float64, and what its pass recorded."""
    seen, tap, found = comparison.before, compile_interventions(lab.resolved(switches), lab.model), []
    for step in range(len(seen.target_ids)):
        recorder = Recorder(lambda site: site.tensor == "weights")
        prefix = torch.tensor([[lab.model.config.bos_id, *seen.target_ids[:step]]])
        with torch.no_grad():
            logits = lab.model(torch.tensor([seen.source_ids]), prefix, tap=chain(tap, recorder))
        found.append((logits[0, -1].double().tolist(), recorder.recording))
    return found


def distribution(logits):
    top = max(logits)
    total = sum(math.exp(logit - top) for logit in logits)
    return [math.exp(logit - top) / total for logit in logits]


def test_probabilities_and_divergence_are_what_loops_over_the_vocabulary_say(lab, comparison):
    p = [distribution(logits) for logits, _ in read_again(lab, comparison, ())]
    q = [distribution(logits) for logits, _ in read_again(lab, comparison, SWITCHES)]
    for step, token in enumerate(comparison.before.target_ids):
        assert comparison.forced_before[step] == pytest.approx(p[step][token], abs=1e-6)
        assert comparison.forced_after[step] == pytest.approx(q[step][token], abs=1e-6)
        divergence = sum(a * (math.log(a) - math.log(b)) for a, b in zip(p[step], q[step], strict=True))
        assert comparison.kl_divergence[step] == pytest.approx(divergence, abs=1e-5)
    assert comparison.kl_divergence.max() > 1e-3


def test_on_its_own_prefixes_the_original_output_has_the_probabilities_that_it_was_written_with(comparison):
    np.testing.assert_allclose(comparison.forced_before, comparison.before.probabilities, atol=1e-5)


@pytest.mark.parametrize(
    "switches", [SWITCHES, [DisableMask("causal")], [AblateHeads("decoder", 0, "self", (1,))]], ids=str
)
def test_as_long_as_the_words_before_are_the_same_both_ways_of_reading_agree(lab, switches):
    comparison = lab.compare(TEXT, switches)
    before, after = comparison.before, comparison.after
    for step, token in enumerate(before.target_ids):
        if before.target_ids[:step] != after.target_ids[:step]:
            break
        assert comparison.forced_after[step] == pytest.approx(math.exp(after.log_probs[step, token]), abs=1e-6)


def test_attention_before_and_after_stand_on_the_same_prefixes(lab, comparison):
    shift = lab.attention_shift(comparison)
    for switches, found in (((), shift.before), (SWITCHES, shift.after)):
        recordings = [recording for _, recording in read_again(lab, comparison, switches)]
        for kind in AttentionKind:
            stack, sublayer = kind.where
            recorded = [recording[f"{stack}.0.{sublayer}.weights"][0].numpy() for recording in recordings]
            again = np.stack([each[:, -1] for each in recorded], axis=1) if kind == "cross" else recorded[-1]
            np.testing.assert_allclose(found[kind].weights[0], again, atol=1e-6)
            assert found[kind].keys == comparison.before.attention(kind).keys
    for kind in AttentionKind:
        np.testing.assert_allclose(shift.before[kind].weights, comparison.before.attention(kind).weights, atol=1e-5)


def test_the_head_that_moved_most_comes_first(lab, comparison):
    shift = lab.attention_shift(comparison)
    ranked = shift.largest()
    assert len(ranked) == 3 * 4 and [entry[0] for entry in ranked] == sorted((e[0] for e in ranked), reverse=True)
    moved, kind, layer, head = ranked[0]
    difference = shift.after[kind].weights[layer, head] - shift.before[kind].weights[layer, head]
    assert moved == np.abs(difference).max() > 0


def test_a_switch_that_nothing_comes_after_moves_no_weight(lab):
    shift = lab.attention_shift(lab.compare(TEXT, [AblateHeads("decoder", 0, "cross", (0,))]))
    assert shift.largest()[0][0] == 0.0  # one layer: what follows cross-attention is the feed-forward


def test_outputs_are_aligned_by_the_fewest_edits_and_what_differs_is_marked(comparison):
    before, after = comparison.before.target_ids, comparison.after.target_ids
    assert comparison.alignment == align(before, after)
    kept_before = [token for token, changed in zip(before, comparison.marks[0], strict=True) if not changed]
    kept_after = [token for token, changed in zip(after, comparison.marks[1], strict=True) if not changed]
    assert kept_before == kept_after
