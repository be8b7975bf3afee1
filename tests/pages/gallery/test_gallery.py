"""The gallery of failures: each sentence is measured again, and the page shows both models on one's own string."""

import pytest
from fakes.plain_bench import PlainBench
from page_models import component, open_page, texts

from pages.gallery.failures import FAILURES, MANY, WHOLE, Failure, folders, right
from transformer.checkpoints.settings import read_settings
from transformer.data.corpora import load_corpus

BENCH = PlainBench()


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.model)
def test_what_goes_wrong_is_still_what_the_model_does(failure: Failure):
    whole, lacking = right(BENCH, failure.whole), right(BENCH, failure.model)
    assert whole >= (0.99 if failure.whole == WHOLE else 0.9) * MANY
    if failure.fails:
        assert lacking < 0.9 * whole
    else:
        assert lacking >= 0.99 * whole
    told = failure.symptom(BENCH)
    assert f" {lacking}" in told and ("Nothing goes wrong" in told) is not failure.fails


def test_the_models_differ_from_the_whole_one_in_one_setting():
    for failure in FAILURES:
        whole, lacking = (read_settings(folder) for folder in folders(failure))
        changed = [
            (part, name)
            for part in ("model", "train", "corpus")
            for name, value in vars(getattr(whole, part)).items()
            if name != "threads" and getattr(getattr(lacking, part), name) != value
        ]
        assert len(changed) == 1, f"{failure.model} differs in {changed}"


def test_the_page_shows_both_outputs_for_the_visitors_string():
    at = open_page("gallery", without="reverse-without-mask", text="h e l p")
    said = texts(at)
    assert "`p\u00a0l\u00a0e\u00a0h` :green[right]" in said
    assert "It learned to cheat" in said
    assert f"{MANY} of {MANY} new strings right" in said


def test_an_output_that_never_ends_is_shown_in_part_on_its_card_and_whole_beside_the_right_one():
    at = open_page("gallery", without="reverse-without-residual", text="a b c d e f g h i j a b c d")
    longest = component(at, "columns")
    assert len(longest["columns"]) == 64 and longest["labels"] == ["whole", "no residual"]
    assert ":red[and 44 more:]" in texts(at)


def test_a_string_that_no_model_can_read_is_answered_beside_its_field():
    at = open_page("gallery", text="8 9")
    assert at.text_input(key="gallery-text").value == "8 9"
    assert "Below, all write “a b c d e f” backwards" in texts(at)
    assert len(load_corpus(WHOLE).validation) >= MANY
