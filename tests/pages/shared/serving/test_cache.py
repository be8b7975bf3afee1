"""Tests of the pages' cache: everything is computed once, and never reused for another model, weights or switches."""

import numpy as np
import pytest
from page_models import OTHER_SEED, PRONOUNS

from pages.compare.loading import get_lab_at
from pages.shared import loading
from pages.shared.cache import cached, inspection_key, lab_key
from transformer.interventions import AblateHeads, DisableMask
from transformer.lab import Lab

TEXT = "The cat slept."
HEAD = AblateHeads("decoder", 0, "cross", (1,))


@pytest.fixture
def calls() -> list:
    return []


def test_equal_calls_are_computed_once_however_they_are_written(untrained_models, calls):
    @cached(max_entries=4)
    def measured(lab: Lab, text: str, switches=(), *, n: int = 2, _note: str = "") -> int:
        calls.append((lab.name, text, tuple(map(str, switches)), n))
        return len(calls)

    lab = loading.get_lab(PRONOUNS)
    assert measured(lab, TEXT) == measured(lab, text=TEXT, switches=[], n=2, _note="not looked at") == 1
    assert measured(lab, TEXT, [HEAD]) == measured(lab, TEXT, (AblateHeads("decoder", 0, "cross", (1,)),)) == 2
    assert measured(lab, TEXT, (DisableMask("causal"),)) == 3 and measured(lab, TEXT, n=3) == 4 and len(calls) == 4


def test_two_functions_share_nothing_and_what_raised_is_asked_again(calls):
    @cached(max_entries=4)
    def first(x: int) -> str:
        calls.append(x)
        if len(calls) == 1:
            raise ValueError("not yet")
        return "first"

    @cached(max_entries=4)
    def second(x: int) -> str:
        return "second"

    with pytest.raises(ValueError, match="not yet"):
        first(1)
    assert (first(1), second(1), first(1), calls) == ("first", "second", "first", [1, 1])


def test_a_copy_belongs_to_the_caller_unless_the_object_is_shared():
    @cached(max_entries=2)
    def copied() -> list[int]:
        return [1]

    @cached(max_entries=2, shared=True)
    def shared() -> list[int]:
        return [1]

    copied().append(2)
    assert copied() == [1] and shared() is shared()


def test_what_a_result_depends_on_besides_is_part_of_its_key(tmp_path):
    path = tmp_path / "note"

    @cached(max_entries=2, also=lambda name: path.read_text())
    def length(name: str) -> int:
        return len(path.read_text())

    path.write_text("ab")
    assert length("note") == 2
    path.write_text("abc")
    assert length("note") == 3


def test_other_weights_under_the_same_name_are_another_model(own_models):
    before = loading.get_lab(PRONOUNS)
    assert loading.get_lab(PRONOUNS) is before
    seen = loading.get_inspection(before, TEXT)
    weights = own_models / PRONOUNS / "weights.safetensors"
    _scale(weights)
    after = loading.get_lab(PRONOUNS)
    assert after is not before and lab_key(after) != lab_key(before)
    now = loading.get_inspection(after, TEXT)
    assert not np.array_equal(now.log_probs[0], seen.log_probs[0])
    assert np.array_equal(now.log_probs, after.inspect(TEXT).log_probs)
    # Who still holds the first model gets what that one computes, not what is on disk by now.
    assert np.array_equal(loading.get_inspection(before, TEXT).log_probs, before.inspect(TEXT).log_probs)
    assert inspection_key(now) != inspection_key(seen)


def test_a_snapshot_is_not_taken_for_the_weights_at_the_end(two_seeds):
    at_end, early = loading.get_lab(OTHER_SEED), get_lab_at(OTHER_SEED, "10")
    seen = [loading.get_inspection(lab, TEXT) for lab in (at_end, early)]
    assert at_end.name == early.name and inspection_key(seen[0]) != inspection_key(seen[1])
    for lab, found in zip((at_end, early), seen, strict=True):
        assert np.array_equal(found.log_probs, lab.inspect(TEXT).log_probs)


def _scale(weights) -> None:
    from safetensors.torch import load_file, save_file

    notes = {"step": "0"}
    save_file({name: 1.5 * tensor for name, tensor in load_file(weights).items()}, weights, notes)
