"""Every figure of the Masks page has its badge, red where a number is wrong, and lines of Python that make it again."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from page_exports import run_lines
from page_models import CLASSIC, PRONOUNS, REVERSE, texts
from random_models import random_model
from test_page_exports import opened
from test_page_heads_proved import same
from test_page_proofs import proved, verdicts

from transformer.analysis.leaks import is_forcing_honest, measure_leak
from transformer.analysis.mask_proofs import prove_forcing, prove_reading
from transformer.figures.tables import as_npz
from transformer.interventions import MaskOff
from transformer.lab import Lab

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("untrained_models")]

HERE = {"model": PRONOUNS, "text": CLASSIC, "beside": "The cat slept."}
ALL = ("proof-batch", "proof-masks", "proof-leak", "proof-forcing", "proof-row")


@pytest.mark.parametrize(
    ("switches", "kind", "count"),
    [
        ([], "cross", 1 + 2 + 5 + 3 + 6),
        (["mask:padding", "mask:causal", "mask:cross"], "decoder_self", 1 + 2 + 8 + 3 + 6),
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
        wrong = {**found.lifted.on_padding, "cross": found.lifted.on_padding["cross"] + 0.01}
        return replace(found, lifted=replace(found.lifted, on_padding=wrong, losses=found.lifted.losses + 0.01))

    monkeypatch.setattr(Lab, "leak", leak)
    at = proved("masks", "proof-leak", **{**HERE, "beside": "The dog slept."}, switch="mask:padding")
    assert verdicts(at) == (6, 2), texts(at)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda reading: {"outputs": ((9, *reading.outputs[0][1:]), *reading.outputs[1:])},
        lambda reading: {"loss": reading.loss + 0.01},
        lambda reading: {"on_future": reading.on_future + 0.01},
    ],
    ids=["output", "loss", "later tokens"],
)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("off", [[], [MaskOff("padding")]], ids=["all masks", "no padding mask"])
def test_every_number_of_a_reading_is_proved(wrong, causal, off):
    model = random_model(causal_mask=causal)
    leak = measure_leak(model, torch.tensor([[5, 9, 4, 2], [7, 2, 0, 0]]), off)
    assert [proof.holds for proof in prove_reading(model, leak, leak.lifted, off)] == [True] * 3
    reading = replace(leak.lifted, **wrong(leak.lifted))
    assert [proof.holds for proof in prove_reading(model, leak, reading, off)].count(False) == 1


def test_a_row_that_is_wrong_turns_its_badge_red(own_models, monkeypatch):
    honest = Lab.empty_row

    def empty_row(self, text):
        found = honest(self, text)
        wrong = {"here": found.here + np.float32(0.1), "floored": found.floored * 2}
        return replace(found, **wrong, from_bias=0.1, gradient=0.1)

    monkeypatch.setattr(Lab, "empty_row", empty_row)
    at = proved("masks", "proof-row", model=REVERSE, text="a b c")
    assert verdicts(at) == (2, 4), texts(at)


@pytest.mark.parametrize("causal", [True, False])
def test_forcing_is_proved_and_a_wrong_number_is_noticed(causal):
    model = random_model(causal_mask=causal)
    found = is_forcing_honest(model, [5, 9, 4, 2])
    assert [proof.holds for proof in prove_forcing(model, [5, 9, 4, 2], found)] == [True] * 3
    for name, verdicts_ in (
        ("from_steps", [False, True, True]),
        ("masked_change", [True, False, True]),
        ("unmasked_change", [True, False, True]),
    ):
        wrong = replace(found, **{name: getattr(found, name) + 0.01})
        assert [proof.holds for proof in prove_forcing(model, [5, 9, 4, 2], wrong)] == verdicts_


@pytest.mark.parametrize(
    ("which", "parameters"),
    [
        ("Masks", {"kind": "decoder_self", "row": "1"}),
        ("Batch", {}),
        ("Leak", {"switch": ["mask:padding", "mask:causal"]}),
    ],
)
def test_the_lines_of_python_make_the_figure(which, parameters):
    at = opened("masks", "take-masks", **{**HERE, **parameters})
    at.segmented_control(key="take-masks-which").set_value(which)
    at.session_state["take-masks"] = True
    same(at.run())


@pytest.mark.parametrize("switch", [[], ["mask:padding", "mask:causal"]], ids=str)
def test_the_leak_in_the_files_is_the_leak_of_the_lines(own_models, monkeypatch, switch):
    taken = []
    monkeypatch.setattr("pages.common.exports.offer_files", lambda away, *_: taken.append(away))
    at = opened("masks", "take-masks", **HERE, switch=switch)
    at.segmented_control(key="take-masks-which").set_value("Leak")
    at.session_state["take-masks"] = True
    made = run_lines(at.run())
    (table,) = taken[-1].tables
    with np.load(io.BytesIO(as_npz([table]))) as found:
        np.testing.assert_array_equal(found["leak"], made["numbers"])
    assert table.values.shape == (2, 5) and table.values[1, 0] == made["leak"].lifted.loss


def test_the_lines_of_python_make_the_row():
    same(opened("masks", "take-row", **HERE))
