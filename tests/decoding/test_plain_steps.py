"""The decoder to which nobody looks, against whole passes of the model and against recorded decoding."""

import pytest
import torch
from random_models import DECODER_BUILDS, half_trained_model, hidden_sources, random_ids, random_model, reversals

from transformer.decoding.beam import beam_search
from transformer.decoding.cached_steps import StepDecoder
from transformer.decoding.captured_steps import CapturedSteps
from transformer.decoding.greedy import NextToken, greedy
from transformer.decoding.plain_steps import PlainSteps, serves
from transformer.model.taps import Site

SERVED = [kind for kind in DECODER_BUILDS if kind.get("score", "dot") == "dot"] + [
    {"tie_embeddings": False},
    {"norm": "pre", "positions": "rotary"},
    {"norm": "none", "positions": "alibi"},
    {"norm": "pre", "residual": False},
]
FIXED = [kind for kind in SERVED if kind.get("positions") not in ("rotary", "alibi")]
"""The kinds whose steps a GPU captures; on a CPU the same steps run one by one."""
BOTH = [(PlainSteps, kind) for kind in SERVED] + [(CapturedSteps, kind) for kind in FIXED]
DTYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=str)


def nothing(site: Site) -> bool:
    return False


@torch.no_grad()
@pytest.mark.parametrize(("steps", "changes"), BOTH, ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_logits_are_those_of_a_whole_pass(within, steps, changes, rows):
    model = random_model(torch.float64, **changes)
    source, real = (whole[:rows] for whole in hidden_sources())
    target, memory = random_ids(rows, 6), model.encode(source, real)
    expected = model.project(model.decode(target, memory, real))
    plain = steps(model, source, real, capacity=7)
    for position in range(6):
        within(plain.logits(target[:, position]), expected[:, position], 1e-12)
    assert plain.length == 6 and not plain.logits(target[:, 0]).is_inference()


@torch.no_grad()
@pytest.mark.parametrize("per_source", [1, 3])
@pytest.mark.parametrize(
    ("steps", "positions"),
    [(PlainSteps, "sinusoidal"), (PlainSteps, "rotary"), (PlainSteps, "alibi"), (CapturedSteps, "learned")],
)
def test_rows_change_places_and_sources_leave(within, per_source, steps, positions):
    model = random_model(torch.float64, positions=positions)
    source, real = hidden_sources()
    memory = model.encode(source, real)
    plain = steps(model, source, real, capacity=11, per_source=per_source)
    rows = torch.arange(3).repeat_interleave(per_source)
    target = torch.zeros(len(rows), 0, dtype=torch.long)
    last = torch.arange(per_source).flip(0)
    moves = [
        (torch.cat([last + per_source * i for i in range(3)]), True),
        (torch.cat((last + 2 * per_source, last)), False),
        (last, False),
    ]
    for kept, same in moves:
        for _ in range(3):
            target = torch.cat((target, random_ids(len(rows), 1)), dim=1)
            expected = model.project(model.decode(target, memory[rows], real[rows]))[:, -1]
            within(plain.logits(target[:, -1]), expected, 1e-12)
        rows, target = rows[kept], target[kept]
        plain.rows(kept, same_sources=same)
    target = torch.cat((target, random_ids(len(rows), 1)), dim=1)
    within(plain.logits(target[:, -1]), model.project(model.decode(target, memory[rows], real[rows]))[:, -1], 1e-12)


@DTYPES
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("batch", [1, 16])
def test_tokens_and_log_probs_are_those_of_recorded_decoding(within, dtype, tolerance, norm, batch):
    model, (source, _) = half_trained_model(dtype, norm), reversals(batch)
    plain, recorded = (list(greedy(model, source, max_length=12, record=record)) for record in (None, nothing))
    assert len(plain) == len(recorded) > 1
    for ours, theirs in zip(plain, recorded, strict=True):
        assert torch.equal(ours.tokens, theirs.tokens) and torch.equal(ours.rows, theirs.rows)
        within(ours.row_log_probs, theirs.row_log_probs, tolerance)


@DTYPES
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_beams_are_those_of_recorded_decoding(within, dtype, tolerance, norm):
    model, (source, _) = half_trained_model(dtype, norm), reversals(6)
    plain, recorded = (
        list(beam_search(model, source, size=3, max_length=12, record=record)) for record in (None, nothing)
    )
    for ours, theirs in zip(plain[-1].finished, recorded[-1].finished, strict=True):
        assert [h.ids for h in ours] == [h.ids for h in theirs]
        within(torch.tensor([h.log_prob for h in ours]), torch.tensor([h.log_prob for h in theirs]), 4 * tolerance)


def decoder_of(model, **watched):
    options = {"tap": None, "record": None, "cache": True, **watched}
    return type(NextToken(model, *hidden_sources(), max_length=4, **options)._steps)


def test_whoever_looks_or_changes_something_gets_the_open_decoder():
    model = random_model()
    assert decoder_of(model) is PlainSteps
    assert decoder_of(model, record=nothing) is decoder_of(model, tap=lambda site, x: x) is StepDecoder
    assert decoder_of(model, cache=False) is decoder_of(random_model(causal_mask=False)) is type(None)
    assert decoder_of(random_model().train()) is type(None)
    assert not serves(random_model(score="additive")) and decoder_of(random_model(score="additive")) is StepDecoder
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert decoder_of(model) is StepDecoder


def test_a_tap_is_refused():
    model, (source, real) = random_model(), hidden_sources()
    plain = PlainSteps(model, source, real, capacity=4)
    with pytest.raises(ValueError, match="offers nothing to a tap"):
        plain.logits(random_ids(3, 1)[:, 0], lambda site, x: x)
