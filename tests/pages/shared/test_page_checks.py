"""Every figure's badge opens checks that are run then and there: all hold, and a corrupted number turns one red."""

import dataclasses

import numpy as np
import pytest
from page_exports import proved, verdicts
from page_models import CLASSIC, PRONOUNS, REVERSE, WIDE, open_page, texts

from pages.shared.wording import plain
from transformer.analysis.attention.vectors import Vectors
from transformer.inspection.inspection import AttentionShift
from transformer.lab import Lab

SWITCHES = ["off:decoder.0.cross:1", "row:encoder.0.self.1:2:uniform", "mean:decoder.1.self:2"]


pytestmark = pytest.mark.usefixtures("untrained_models")


PAGES = [
    ("home", ["token-lines-proof"], {}, None),
    ("attention", ["all-heads-proof", "head-matrix-proof"], {"kind": "encoder_self"}, None),
    ("attention", ["head-matrix-proof", "entry-products-proof"], {"kind": "cross", "cell": "2,3"}, None),
    ("attention", ["bertviz-proof", "branch-lines-proof"], {"picture": "bertviz-neuron"}, None),
    ("home", ["token-lines-proof"], {"layer": "0", "head": "2", "switch": SWITCHES}, None),
    ("attention", ["token-probabilities-proof", "attention-difference-proof"], {"switch": SWITCHES}, None),
    (
        "attention",
        ["token-probabilities-proof", "attention-difference-proof"],
        {"switch": "mask:causal", "kind": "decoder_self"},
        None,
    ),
    (
        "positions",
        ["token-probabilities-proof", "attention-difference-proof"],
        {"switch": "positions:encoder:remove", "section": "break"},
        None,
    ),
    (
        "steps",
        ["branch-lines-proof", "step-candidates-proof", "step-attention-cross-proof", "step-attention-self-proof"],
        {"step": "2", "switch": SWITCHES},
        None,
    ),
    ("steps", ["beam-tree-proof", "hypothesis-attention-proof"], {"look": "beam", "switch": SWITCHES}, None),
    (
        "steps",
        ["sampling-distribution-proof", "sample-tree-proof"],
        {"look": "samples", "top_k": "5", "temperature": "1.5"},
        None,
    ),
    ("steps", ["logit-lens-depths-proof", "logit-contributions-proof"], {"look": "inside", "step": "1"}, 3 + 3),
    ("steps", ["teacher-forced-reference-proof"], {"look": "reference"}, None),
]


@pytest.mark.parametrize(("page", "badges", "parameters", "count"), PAGES)
def test_every_badge_of_a_page_opens_checks_that_hold(page, badges, parameters, count):
    at = proved(page, *badges, model=PRONOUNS, text=CLASSIC, **parameters)
    holding, failing = verdicts(at)
    assert failing == 0, texts(at)
    assert holding >= len(badges) if count is None else holding == count, texts(at)
    assert texts(at).count("run just now:") == len(badges)


def test_a_closed_badge_runs_nothing():
    assert verdicts(open_page("attention", model=PRONOUNS, text=CLASSIC)) == (0, 0)


def corrupt_weights(monkeypatch):
    """Makes every new inspection show 0.01 too much in one cell of cross-attention; what is remembered stays honest."""
    honest = Lab.inspect

    def inspect(self, *args, **kwargs):
        seen = honest(self, *args, **kwargs)
        weights = seen.cross.weights.copy()
        weights[0, 1, 2, 3] += np.float32(0.01)
        return dataclasses.replace(
            seen, attentions={**seen.attentions, "cross": dataclasses.replace(seen.cross, weights=weights)}
        )

    monkeypatch.setattr(Lab, "inspect", inspect)


def test_a_corrupted_weight_turns_the_checks_red(own_models, monkeypatch):
    corrupt_weights(monkeypatch)
    badges = "all-heads-proof", "head-matrix-proof"
    at = proved("attention", *badges, model=PRONOUNS, text=WIDE, layer="0", head="1")
    said = texts(at)
    assert said.count(":red[:material/error: **1 of ") == 2
    assert said.count(":red[**The weights are softmax") == 2 and "**0.0100**" in said


@pytest.mark.parametrize("switch", [[], SWITCHES])
def test_one_wrong_contribution_turns_its_check_red(switch, untrained_models, monkeypatch):
    honest = Vectors.contributions

    def contributions(self, weights):
        norms = honest(self, weights).copy()
        norms[0, 2, 1, 0] += np.float32(1e-3)
        return norms

    monkeypatch.setattr(Vectors, "contributions", contributions)
    shown = dict(model=PRONOUNS, text=WIDE, kind="cross", layer="0", show="norms", combine="mean", switch=switch)
    at = proved("attention", "head-matrix-proof", **shown)
    assert verdicts(at)[1] == 1 and ":red[**Each cell is the length of" in texts(at)


@pytest.mark.parametrize(
    ("kind", "switch"),
    [("cross", "copy:encoder.0.self.heads.2:0>1:It slept."), ("decoder_self", "block:decoder.1.self")],
)
def test_a_look_that_counts_though_nothing_of_it_arrives_turns_its_check_red(own_models, monkeypatch, kind, switch):
    monkeypatch.setattr("transformer.analysis.attention.silenced_heads.silenced", lambda *_: [])
    shown = dict(model=PRONOUNS, text=WIDE, kind=kind, show="rollout", switch=switch)
    at = proved("attention", "attention-rollout-proof", **shown)
    claim = ":red[**Attention counts by the part of it that switches let through.**]"
    assert verdicts(at)[1] == 1 and claim in texts(at)


def test_a_corrupted_difference_turns_its_check_red(own_models, monkeypatch):
    honest = Lab.attention_shift

    def attention_shift(self, comparison):
        shift = honest(self, comparison)
        weights = shift.after["cross"].weights.copy()
        weights[1, 0, 1, 1] += np.float32(0.02)
        after = {**shift.after, "cross": dataclasses.replace(shift.after["cross"], weights=weights)}
        return AttentionShift(shift.before, after)

    monkeypatch.setattr(Lab, "attention_shift", attention_shift)
    at = proved("attention", "attention-difference-proof", model=PRONOUNS, text=WIDE, switch=SWITCHES)
    assert verdicts(at)[1] == 1 and f":red[**{plain('After: the weights of this head')}.**]" in texts(at)


def test_a_head_of_another_kind_that_did_not_move_most_turns_the_check_of_the_difference_red(own_models, monkeypatch):
    honest = AttentionShift.largest
    monkeypatch.setattr(AttentionShift, "largest", lambda shift: honest(shift)[1:])
    at = proved(
        "attention", "attention-difference-proof", model=PRONOUNS, text=WIDE, kind="encoder_self", switch=SWITCHES
    )
    kind, place = at.button(key="most-moved").label.partition(": ")[2].split(", ", 1)
    assert kind != "encoder self-attention" and verdicts(at)[1] == 1
    assert f":red[**{plain(kind.capitalize())}, {place} moved most.**]" in texts(at)


def test_where_no_head_moved_that_is_proved(untrained_models):
    at = proved("attention", "attention-difference-proof", model=PRONOUNS, text=WIDE, switch="mask:padding")
    assert verdicts(at)[1] == 0 and "**No weight of any head moved, but for rounding.**" in texts(at)


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_without_the_causal_mask_both_sides_are_proved_on_the_same_prefixes(kind):
    for key in ("attention-difference-proof", "token-probabilities-proof"):
        at = proved("attention", key, model=REVERSE, text="a b c", switch="mask:causal", kind=kind)
        assert verdicts(at)[1] == 0 and verdicts(at)[0] > 2
