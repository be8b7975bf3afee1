"""The logit lens: the last depth is the model's prediction, and contributions sum to the difference of logits."""

import pytest
import torch
from random_models import random_model

from transformer.analysis.steps.logit_lens import Part, logit_lens
from transformer.decoding.greedy import Constraints, greedy
from transformer.interventions import (
    AblateHeads,
    AblateSublayer,
    DisableMask,
    EditPositions,
    SetAttentionRow,
    compile_interventions,
)

SOURCE = [5, 9, 14, 7, 2]
TARGET = [6, 11, 4, 17, 9]
SWITCHES = [
    (),
    (AblateHeads("decoder", 1, "cross", (0, 2)),),
    (AblateSublayer("decoder", 1, "ffn"), AblateSublayer("decoder", 0, "self")),
    (DisableMask("causal"), SetAttentionRow("decoder", 2, "cross", 1, 3, 0)),
    (EditPositions("decoder", "scale", 0.5),),
]
DTYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=str)


@DTYPES
@pytest.mark.parametrize("norm", ["post", "pre", "none"])
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_contributions_sum_to_the_difference(norm, dtype, tolerance, switches):
    model = random_model(dtype, norm=norm)
    seen = logit_lens(model, SOURCE, TARGET, 3, switches)
    largest = 0.0
    for token, other in ((4, 9), (2, 17), (11, 3)):
        found = seen.contributions(model, token, other)
        scale = max(1.0, *(abs(value) for _, value in found))
        largest = max(largest, abs(sum(value for _, value in found) - seen.difference(token, other)) / scale)
    assert largest <= tolerance
    kinds = [part.kind for part, _ in found]
    assert kinds.count("head") == 3 * 2 * 4 and kinds.count("ffn") == 3 and kinds.count("biases") == 1
    assert len({part for part, _ in found}) == len(found)


@pytest.mark.parametrize(
    "changes", [dict(positions="none"), dict(positions="rotary"), dict(residual=False), dict(output_bias=True)], ids=str
)
def test_other_models_sum_as_well(changes):
    model = random_model(torch.float64, **changes)
    seen = logit_lens(model, SOURCE, TARGET, 2)
    found = seen.contributions(model, 4, 9)
    assert sum(value for _, value in found) == pytest.approx(seen.difference(4, 9), abs=1e-10)
    assert (Part("positions") in dict(found)) == ("positions" not in changes)


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_the_last_depth_is_the_model_s_own_prediction(within, norm, switches):
    model = random_model(torch.float64, norm=norm)
    rules, tap = Constraints(forced=dict(enumerate(TARGET[:3]))), compile_interventions(switches, model)
    own = list(greedy(model, torch.tensor([SOURCE]), max_length=4, constraints=rules, tap=tap))[3]
    seen = logit_lens(model, SOURCE, TARGET, 3, switches)
    assert seen.log_probs.shape == (4, 23)
    within(torch.from_numpy(seen.log_probs[-1]), own.log_probs[0], 1e-12)
    within(torch.from_numpy(seen.log_probs).exp().sum(1), torch.ones(4), 1e-12)
    assert abs(seen.log_probs[0] - seen.log_probs[-1]).max() > 0.1


def test_a_head_s_contribution_is_what_the_logits_lose_without_it():
    """Leaves only the projection after the head: no norms, the last feed-forward block off, no bias on the values."""
    model = random_model(torch.float64, norm="none")
    torch.nn.init.zeros_(model.decoder.layers[2].cross_attention.value.bias)
    last = AblateSublayer("decoder", 2, "ffn")
    whole = logit_lens(model, SOURCE, TARGET, 3, (last,))
    for head in range(4):
        off = logit_lens(model, SOURCE, TARGET, 3, (last, AblateHeads("decoder", 2, "cross", (head,))))
        part = Part("head", 2, "cross", head)
        share = dict(whole.contributions(model, 4, 9))[part]
        assert share == pytest.approx(whole.difference(4, 9) - off.difference(4, 9), abs=1e-12)
        assert abs(share) > 1e-3 and dict(off.contributions(model, 4, 9))[part] == 0


def test_a_sublayer_that_is_off_gives_nothing_and_the_switch_is_named():
    model = random_model(torch.float64)
    found = dict(
        logit_lens(model, SOURCE, TARGET, 3, (AblateSublayer("decoder", 1, "ffn"),)).contributions(model, 4, 9)
    )
    assert found[Part("ffn", 1, "ffn")] == 0
    steered = dict(logit_lens(model, SOURCE, TARGET, 3).contributions(model, 4, 9))
    assert Part("switches") not in steered and Part("biases") in steered


def test_all_biases_stand_in_one_term():
    """The term is 0 when every bias of the decoder and its norms is 0."""
    model = random_model(torch.float64)
    with torch.no_grad():
        for name, parameter in model.decoder.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    found = dict(logit_lens(model, SOURCE, TARGET, 3).contributions(model, 4, 9))
    assert found[Part("biases")] == 0
