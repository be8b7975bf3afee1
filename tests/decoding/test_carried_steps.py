"""A recurrent or convolutional decoder whose state is carried on writes what passing the whole prefix again would."""

from itertools import product

import pytest
import torch
from random_models import (
    CONVOLUTIONAL_BUILDS,
    RECURRENT_BUILDS,
    random_convolutional,
    random_ids,
    random_recurrent,
)

from transformer.decoding.beam import beam_search
from transformer.decoding.carried_steps import CarriedSteps
from transformer.decoding.greedy import Constraints, greedy, log_probs_on_prefixes
from transformer.interventions import compile_interventions, parse_intervention
from transformer.model.taps import Recorder, chain

ALL_BUILDS = [*RECURRENT_BUILDS, *CONVOLUTIONAL_BUILDS]
BUILDS = pytest.mark.parametrize("build", ALL_BUILDS, ids=str)


def random_carrying(build, **changes):
    """A tiny model of the family that has these settings."""
    make = random_recurrent if "attention" in build else random_convolutional
    return make(**{**build, **changes})


@BUILDS
def test_each_step_is_a_position_of_the_whole_pass_site_by_site(build, within):
    model, source, target = random_carrying(build, n_decoder_layers=2), random_ids(3, 6), random_ids(3, 5)
    source[1, 4:] = source[2, 1:] = 0
    whole = Recorder()
    logits = model(source, target, tap=whole)
    steps = CarriedSteps(model, model.encode(source), source != 0, capacity=5)
    for t in range(5):
        seen = Recorder()
        within(steps.logits(target[:, t], seen), logits[:, t], 5e-6)
        for site, found in seen.recording.items():
            expected = whole.recording[site]
            if site.tensor in ("k", "v"):  # the same at each step
                within(found, expected, 1e-6)
            elif site.tensor == "logits":
                within(found, expected[:, t], 5e-6)
            else:
                within(found.select(-2, 0).double(), expected.select(-2, t).double(), 5e-6)
    assert steps.length == 5


@BUILDS
def test_greedy_is_the_same_with_and_without_a_state(build, within):
    model, source = random_carrying(build, n_decoder_layers=2), random_ids(3, 6)
    quick, slow = ([*greedy(model, source, max_length=9, cache=cache)] for cache in (True, False))
    assert [step.reused for step in quick] == [*range(len(quick))]
    assert [step.tokens.tolist() for step in quick] == [step.tokens.tolist() for step in slow]
    for one, other in zip(quick, slow, strict=True):
        within(one.row_log_probs, other.row_log_probs, 5e-6)


@BUILDS
def test_a_beam_of_everything_finds_the_most_probable(build):
    model, source = random_carrying(build, vocab_size=6), torch.tensor([[4, 5, 3, 2]])
    *_, last = beam_search(model, source, size=125, max_length=3, alpha=0.0, early_stopping=False)
    scores = {}
    for ids in product(range(1, 6), repeat=3):
        cut = ids[: ids.index(2) + 1] if 2 in ids else ids
        forced = log_probs_on_prefixes(model, source, torch.tensor([cut]))[0]
        scores[cut] = sum(forced[t, token].item() for t, token in enumerate(cut))
    ids = max(scores, key=scores.__getitem__)
    best = last.finished[0][0]
    assert best.ids == ids and best.log_prob == pytest.approx(scores[ids], abs=1e-5)


@pytest.mark.parametrize("build", [build for build in ALL_BUILDS if build.get("attention") != "none"], ids=str)
@pytest.mark.parametrize("switch", ["off:decoder.0.cross:0", "forbid:decoder.0.cross:1,0", "row:decoder.0.cross.0:2:1"])
def test_a_switch_changes_the_written_output_as_the_whole_pass(build, switch, within):
    model, source = random_carrying(build), random_ids(1, 6)
    spec = parse_intervention(switch)
    assert spec is not None
    tap = compile_interventions([spec], model)
    steps = [*greedy(model, source, max_length=6, constraints=Constraints(min_length=6), tap=tap)]
    written = torch.stack([step.tokens for step in steps], dim=1)
    forced = log_probs_on_prefixes(model, source, written, tap=tap)[0]
    for t, step in enumerate(steps):
        within(step.row_log_probs[0], forced[t], 5e-6)
    assert (forced - log_probs_on_prefixes(model, source, written)[0]).abs().max() > 1e-4


def test_a_site_is_offered_with_or_without_a_state(within):
    model, source = random_recurrent(attention="additive"), random_ids(2, 5)
    recorder = Recorder()
    [*greedy(model, source, max_length=3, tap=chain(recorder))]
    assert set(recorder.recording) == set(model.sites())


def test_more_tokens_than_the_model_takes_are_refused():
    model = random_recurrent(max_length=4)
    with pytest.raises(ValueError, match="at most 4 tokens"):
        CarriedSteps(model, model.encode(random_ids(1, 3)), torch.ones(1, 3, dtype=torch.bool), capacity=5)
