"""Every figure of the Masks page has its badge, red where a number is wrong."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from page_exports import proved, verdicts, with_menus
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, open_page, texts
from random_models import random_model

from transformer.analysis.attention.mask_leakage import is_forcing_honest, measure_leak, see_empty_row
from transformer.analysis.attention.mask_leakage_checks import check_forcing, check_reading
from transformer.interventions import DisableMask
from transformer.lab import Lab
from transformer.views.masks import TeacherForcing

pytestmark = pytest.mark.usefixtures("untrained_models")

ON_LATER = "on later tokens, decoder self-attention"
HERE = {"model": PRONOUNS, "text": CLASSIC, "beside": "The cat slept."}
VIEWS = ("batch-tokens", "sentence-masks", "mask-leak", "teacher-forcing", "empty-attention-row")
ALL = tuple(f"{view}-proof" for view in VIEWS)


@pytest.mark.parametrize(
    ("switches", "kind", "count"),
    [
        ([], "cross", 2 + 2 + 7 + 3 + 6),
        (["mask:padding", "mask:causal", "mask:cross"], "decoder_self", 2 + 3 + 9 + 3 + 6),
    ],
)
def test_every_badge_opens_checks_that_hold(switches, kind, count):
    at = proved("masks", *ALL, **HERE, switch=switches, kind=kind)
    assert verdicts(at) == (count, 0), texts(at)
    assert texts(at).count("run just now:") == len(ALL)


def test_a_leak_that_is_wrong_turns_its_badge_red(own_models, monkeypatch):
    honest = Lab.leak

    def leak(self, *arguments):
        found = honest(self, *arguments)
        name = "on padding, cross-attention"
        wrong = {**found.lifted.shares, name: found.lifted.shares[name] + 0.01}
        return replace(found, lifted=replace(found.lifted, shares=wrong, losses=found.lifted.losses + 0.01))

    monkeypatch.setattr(Lab, "leak", leak)
    at = proved("masks", "mask-leak-proof", **{**HERE, "beside": "The dog slept."}, switch="mask:padding")
    assert verdicts(at) == (7, 2), texts(at)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda reading: {"outputs": ((9, *reading.outputs[0][1:]), *reading.outputs[1:])},
        lambda reading: {"loss": reading.loss + 0.01},
        lambda reading: {"shares": {**reading.shares, ON_LATER: reading.shares[ON_LATER] + 0.01}},
    ],
    ids=["output", "loss", "later tokens"],
)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("off", [[], [DisableMask("padding")]], ids=["all masks", "no padding mask"])
def test_every_number_of_a_reading_is_checked(wrong, causal, off):
    model = random_model(causal_mask=causal)
    leak = measure_leak(model, torch.tensor([[5, 9, 4, 2], [7, 2, 0, 0]]), off)
    assert [check.holds for check in check_reading(model, leak, leak.lifted, off)] == [True] * 3
    reading = replace(leak.lifted, **wrong(leak.lifted))
    assert [check.holds for check in check_reading(model, leak, reading, off)].count(False) == 1


def test_a_row_that_is_wrong_turns_its_badge_red(own_models, monkeypatch):
    def empty_row(*given):
        found = see_empty_row(*given)
        wrong = {"here": found.here + np.float32(0.1), "floored": found.floored * 2}
        return replace(found, **wrong, from_bias=0.1, gradient=0.1)

    monkeypatch.setattr("transformer.views.masks.see_empty_row", empty_row)
    at = proved("masks", "empty-attention-row-proof", model=REVERSE, text="a b c")
    assert verdicts(at) == (2, 4), texts(at)


@pytest.mark.parametrize("causal", [True, False])
def test_forcing_is_checked_and_a_wrong_number_is_noticed(causal):
    model = random_model(causal_mask=causal)
    found = is_forcing_honest(model, [5, 9, 4, 2])
    assert [check.holds for check in check_forcing(model, [5, 9, 4, 2], found)] == [True] * 3
    for name, verdicts_ in (
        ("from_steps", [False, True, True]),
        ("masked_change", [True, False, True]),
        ("unmasked_change", [True, False, True]),
    ):
        wrong = replace(found, **{name: getattr(found, name) + 0.01})
        assert [check.holds for check in check_forcing(model, [5, 9, 4, 2], wrong)] == verdicts_


def test_what_cannot_be_shown_is_said_in_a_sentence(own_models, monkeypatch):
    def no_row(*_):
        raise ValueError("there is no first row")

    monkeypatch.setattr("transformer.views.masks.see_empty_row", no_row)
    at = open_page("masks", model=REVERSE, text="a b c")
    assert "There is no first row" in texts(at)
    assert "teacher-forcing-menu" in at.session_state and "empty-attention-row-menu" not in at.session_state


def test_an_open_badge_runs_its_checks_once(own_models, monkeypatch):
    runs = []
    honest = TeacherForcing.checks
    monkeypatch.setattr(TeacherForcing, "checks", lambda *given: runs.append(given) or honest(*given))
    at = proved("masks", "teacher-forcing-proof", model=REVERSE, text="a b c")
    assert verdicts(checked(at.run())) == (3, 0) and len(runs) == 1
    at.session_state["teacher-forcing-menu"] = False
    at = with_menus(at.run(), "teacher-forcing-proof")
    assert verdicts(at) == (3, 0) and len(runs) == 2
