"""The check of an entry: an honest one holds in every model and under every switch; no lie about a term stays green."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import OTHER_SCORES, half_trained_model, random_model

from transformer.analysis.attention.entry import explain_entry
from transformer.analysis.attention.entry_checks import check_entry
from transformer.interventions import (
    AblateHeads,
    AblateResidual,
    AblateSublayer,
    DisableMask,
    MaskEntry,
    MeanAblateHeads,
    PatchActivation,
    ScaleHeads,
    SetAttentionRow,
)
from transformer.model.taps import Address, Site

SOURCE = [5, 9, 4, 7, 11, 2]
SUBLAYERS = [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]
FORCED = {0: 6, 1: 7, 2: 8, 3: 9, 4: 2}


def taken_apart(model, switches, stack, sublayer, *, head=2, query=2, key=1):
    """An entry of layer 1, and what else its check is given."""
    asked = {"address": Address(stack, 1, sublayer), "query": query}
    entry = explain_entry(model, SOURCE, switches, forced=FORCED, head=head, key=key, **asked)
    return entry, (model, SOURCE, switches, FORCED), {**asked, "shown": entry.weights.copy()}


def failing(entry, given, asked):
    return [check.claim for check in check_entry(*given, **asked, entry=entry) if not check.holds]


def switches_in(model, stack, sublayer):
    """Sets of switches that act on row 2 of layer 1 of a block."""
    at = (stack, 1, sublayer)
    means = torch.full((model.config.n_heads, model.config.d_head), 0.3)
    keys = 3 if (stack, sublayer) == ("decoder", "self") else len(SOURCE)
    found = {
        "this head off": (AblateHeads(*at, (2,)),),
        "other heads off": (AblateHeads(*at, (0, 3)),),
        "all heads off": (AblateHeads(*at, (0, 1, 2, 3)),),
        "this head scaled": (ScaleHeads(*at, (1, 2), 0.5),),
        "another head doubled": (ScaleHeads(*at, (0,), 2.0),),
        "heads at their mean": (MeanAblateHeads(*at, (1, 2), means),),
        "even row": (SetAttentionRow(*at, 2, 2, "uniform"),),
        "own row": (SetAttentionRow(*at, 2, 2, tuple(range(1, keys + 1))),),
        "one-hot row": (SetAttentionRow(*at, 2, 2, 1),),
        "this entry forbidden": (MaskEntry(*at, 2, 1),),
        "all entries forbidden": tuple(MaskEntry(*at, 2, key) for key in range(keys)),
        "causal off": (DisableMask("causal"),),
        "all masks off": (DisableMask("causal"), DisableMask("padding"), DisableMask("cross")),
        "block off": (AblateSublayer(*at),),
        "residual off": (AblateResidual(*at),),
        "several": (
            AblateHeads(*at, (0,)),
            SetAttentionRow(*at, 1, 2, "uniform"),
            MaskEntry(*at, 2, 0),
            DisableMask("causal"),
        ),
    }
    copies = (("q", 2), ("k", None), ("v", 1), ("heads", 2), ("heads", None), ("output", None), ("input", None))
    for name, head in copies:
        found[f"{name} copied"] = (PatchActivation(Site(*at, name), head, ((0, 2),), "x").filled(model, [8, 6, 2, 3]),)
    return found


@pytest.mark.slow_variants
@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
def test_an_honest_entry_holds_under_every_switch(stack, sublayer):
    for norm in ("post", "pre"):
        model = half_trained_model(norm=norm)
        for name, switches in {"none": (), **switches_in(model, stack, sublayer)}.items():
            if norm == "pre" and name not in ("none", "this head off", "own row", "this entry forbidden", "causal off"):
                continue
            entry, given, asked = taken_apart(model, switches, stack, sublayer)
            assert failing(entry, given, asked) == [], (norm, name)


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "none"])
@pytest.mark.parametrize(
    "changes", [{}, *OTHER_SCORES, {"scale_scores": False}, {"causal_mask": False}, {"norm": "pre"}]
)
def test_an_honest_entry_holds_in_other_models(positions, changes):
    if positions == "rotary" and "score" in changes:
        pytest.skip("a contradiction, which ModelConfig refuses")
    model = random_model(max_length=12, positions=positions, **changes)
    for stack, sublayer in SUBLAYERS:
        entry, given, asked = taken_apart(model, (), stack, sublayer)
        assert failing(entry, given, asked) == []


def other_weights(entry):
    """Every weight of the row but this entry's replaced."""
    rest = (1 - entry.weights[entry.key]) / (len(entry.weights) - 1)
    weights = np.full_like(entry.weights, rest)
    weights[entry.key] = entry.weights[entry.key]
    return weights


def other_heads_smaller(entry):
    shares = entry.shares * 0.3
    shares[entry.head] = entry.shares[entry.head]
    return shares


LIES = {
    "scores + 1": lambda c: {"scores": c.scores + 1},
    "scores x 2": lambda c: {"scores": c.scores * 2},
    "one other score": lambda c: {"scores": c.scores + np.float32(0.001) * (np.arange(len(c.scores)) == 0)},
    "mask inverted": lambda c: {"allowed": ~c.allowed},
    "wrong divisor": lambda c: {"divisor": c.divisor * 2},
    "one other product": lambda c: {"products": c.products + 0.01 * (np.arange(len(c.products)) == 1)},
    "products in another order": lambda c: {"products": c.products[::-1]},
    "other weights": lambda c: {"weights": other_weights(c)},
    "this weight": lambda c: {"weights": c.weights + np.float32(1e-3) * (np.arange(len(c.weights)) == c.key)},
    "shares of other heads": lambda c: {"shares": other_heads_smaller(c)},
    "shares and rest": lambda c: {
        "shares": other_heads_smaller(c),
        "rest_share": 1 - float(other_heads_smaller(c).sum()) - c.bias_share,
    },
    "reached": lambda c: {"reached": not c.reached},
    "nothing reached": lambda c: {
        "reached": False,
        "contribution": c.contribution * 0,
        "shares": c.shares * 0,
        "rest_share": 1 - c.bias_share,
    },
    "contribution": lambda c: {"contribution": c.contribution + 1e-4},
    "bias's share": lambda c: {"bias_share": c.bias_share + 0.01, "rest_share": c.rest_share - 0.01},
    "rest": lambda c: {"rest_share": c.rest_share + 0.001},
    "output": lambda c: {"output": c.output * 1.001},
    "q": lambda c: {"q": c.q * np.float32(1.001)},
    "k": lambda c: {"k": c.k[::-1]},
    "v": lambda c: {"v": c.v + np.float32(0.001)},
}


@pytest.mark.slow_variants
@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
def test_no_lie_about_a_cell_stays_green(stack, sublayer):
    model = half_trained_model()
    for switches in (
        (),
        (AblateHeads(stack, 1, sublayer, (0,)), MaskEntry(stack, 1, sublayer, 2, 0)),
        (DisableMask("causal"),),
    ):
        entry, given, asked = taken_apart(model, switches, stack, sublayer)
        for name, lie in LIES.items():
            assert failing(replace(entry, **lie(entry)), given, asked), (name, switches)


def test_a_lie_is_named_by_the_term_that_it_is_about():
    entry, given, asked = taken_apart(half_trained_model(), (), "decoder", "cross")
    assert failing(replace(entry, scores=entry.scores + 1), given, asked) == ["Each score of the row is q · k / √d"]
    assert failing(replace(entry, allowed=~entry.allowed), given, asked) == ["The mask is what its rule says"]
    assert failing(replace(entry, rest_share=0.1), given, asked) == ["Nothing else is in the output"]
    moved = np.nextafter(asked["shown"], 2)
    assert failing(entry, given, {**asked, "shown": moved}) == ["The row of weights is the picture's"]


def test_a_cell_of_another_model_is_found():
    entry, given, asked = taken_apart(half_trained_model(), (), "encoder", "self")
    other = random_model()
    assert len(failing(entry, (other, *given[1:]), asked)) > 4
