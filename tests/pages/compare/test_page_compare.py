"""Two at once: every control, heads matched before they are compared, and no difference where tokens do not align."""

import pytest
from page_models import CLASSIC, OTHER_SEED, PRONOUNS, REVERSE, WIDE, checked, open_page, texts

from pages.compare.choices import Choices
from pages.compare.loading import Side, matched_texts
from pages.shared import loading
from pages.shared.wording import number
from transformer.checkpoints.store import load_checkpoint
from transformer.lab import Lab, load
from transformer.views.comparison import HeadMatching
from transformer.views.subjects import SideBySide

pytestmark = pytest.mark.usefixtures("two_seeds")


def two(**parameters):
    return open_page("compare", **{"model": PRONOUNS, "text": CLASSIC, "other": OTHER_SEED, **parameters})


def said(at):
    return texts(at).replace("\\", "")


def test_heads_of_two_seeds_are_matched_before_they_are_compared():
    at = two(kind="encoder_self", layer="1", head="2")
    assert "The distance between every two heads" in said(at)
    assert "These two heads: distance **" in said(at)
    assert "other-seed** · layer" in said(at)
    at = checked(at.segmented_control(key="two-pairing").set_value("same").run())
    assert at.query_params["pairing"] == "same"
    assert "**other-seed** · layer 1 · head 2" in said(at)


def test_different_outputs_are_compared_on_the_same_words_and_labelled():
    at = two(kind="cross")
    assert "right minus left" in said(at)
    same = load(PRONOUNS).inspect(CLASSIC).target_ids == load(OTHER_SEED).inspect(CLASSIC).target_ids
    assert ("teacher-forced" in said(at)) == (not same)


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_models_with_other_tokens_are_shown_side_by_side_and_the_page_says_why_there_is_no_difference(kind):
    at = two(other=REVERSE, kind=kind, layer="0")
    assert "No difference is shown" in said(at) and "into different tokens" in said(at)
    assert "Heads are matched by what they attend to in the same tokens" in said(at)
    assert len(at.get("plotly_chart")) == 2


def test_a_head_with_none_across_from_it_stands_beside_the_nearest(monkeypatch):
    found = said(two(other=REVERSE))  # of one layer, and no tokens in common
    assert "untrained-reverse has 4 such heads: layer 1, head 0 does not exist there." in found
    assert "**untrained-reverse** · layer 0 · head 0" in found
    monkeypatch.setattr("transformer.analysis.comparison.head_matching.Matching.partner", lambda matching, head: None)
    found = said(two(kind="encoder_self", layer="1", head="2"))
    first, second = load(PRONOUNS), load(OTHER_SEED)
    sides = SideBySide(first, first.inspect(CLASSIC), second, second.inspect(CLASSIC))
    texts_read = matched_texts(Side(first, "", sides.left, ()))
    distances = HeadMatching(kind="encoder_self", texts=texts_read).data(*vars(sides).values()).distances[1 * 4 + 2]
    layer, head = divmod(int(distances.argmin()), 4)
    assert "layer 1, head 2 has no match" in found
    assert f"**other-seed** · layer {layer} · head {head}" in found
    assert f"These two heads: distance **{number(float(distances.min()))}**" in found


def test_two_sentences_go_through_one_model_and_are_aligned():
    at = two(two="sentences", other_text=WIDE, kind="encoder_self")
    assert "tokens of both in line with the fewest edits" in said(at)
    assert "compared with itself" in said(at)
    at = checked(at.text_input(key="two-text").set_value("The dog.").run())
    assert at.query_params["other_text"] == "The dog."
    assert "too few to compare cell by cell" in said(at)
    at = checked(at.text_input(key="two-text").set_value("word " * 90).run())
    assert "tokens" in said(at) and not at.get("plotly_chart")


def test_two_steps_of_one_run_stand_side_by_side():
    at = two(model=OTHER_SEED, other=OTHER_SEED)
    at = checked(at.selectbox(key="two-other-at").set_value("10").run())
    assert at.query_params["other_at"] == "10"
    assert "**other-seed, step 10** · layer" in said(at)
    expected = load(PRONOUNS).inspect(CLASSIC).translation  # whose weights this snapshot has
    folder = load(OTHER_SEED).checkpoint.folder
    snapshot = Lab(load_checkpoint(folder, weights=folder / "snapshots" / "10.safetensors"))
    assert snapshot.inspect(CLASSIC).translation == expected
    at = checked(at.selectbox(key="two-at").set_value("200").run())
    assert at.query_params["at"] == "200" and "**other-seed, step 200** · layer" in said(at)


def test_the_same_model_twice_differs_by_exactly_nothing():
    at = two(other=PRONOUNS)
    assert "Both write the same tokens." in said(at)
    assert "the largest difference is exactly 0" in said(at)
    assert f"distance **{number(0.0)}**" in said(at)


def test_the_page_opens_on_two_sentences_and_a_link_to_a_model_on_two_models():
    at = open_page("compare", model=PRONOUNS, text=CLASSIC)
    assert at.segmented_control(key="two").value == "sentences" and at.text_input(key="two-text").value == WIDE
    assert two().segmented_control(key="two").value == "models"


def test_the_other_model_is_chosen_and_is_in_the_url():
    at = open_page("compare", model=PRONOUNS, text=CLASSIC, two="models")
    at = checked(at.selectbox(key="two-other").set_value(REVERSE).run())
    assert at.query_params["other"] == REVERSE
    at = checked(at.segmented_control(key="two").set_value("sentences").run())
    assert at.query_params["two"] == "sentences"
    assert at.text_input(key="two-text").value == WIDE


def test_a_switch_acts_on_both_sides_and_what_does_not_fit_is_said():
    at = two(other=REVERSE, switch="off:encoder.1.self:1")
    assert "is left out for untrained-reverse" in said(at)
    at = two(switch="off:encoder.1.self:1")
    assert "left out" not in said(at)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"other": "nobody"}, "There is no model 'nobody'"),
        ({"other": "../../etc"}, "There is no model"),
        ({"other_at": "7"}, "There is no snapshot of step 7 of other-seed: there are 10, 200"),
        ({"other_at": "x"}, "The link says other_at “x”, which is not a step"),
        ({"two": "three"}, "The link says two “three”, which must be one of: models, sentences"),
        ({"pairing": "?"}, "The link says pairing “?”"),
        ({"at": "5"}, "There is no snapshot of step 5 of untrained-pronouns: it kept none"),
    ],
)
def test_bad_links_are_answered_in_a_sentence(parameters, sentence):
    assert sentence in said(two(**parameters))


def test_everything_chosen_is_printed_and_read_again():
    chosen = Choices(two="sentences", other="a", at="3", other_at="4", other_text="x & y", pairing="same")
    assert Choices.read(chosen.parameters()) == (chosen, ())
    assert Choices().parameters() == {}


def test_a_sentence_that_is_too_long_for_a_link_is_cut_and_that_is_said():
    found, (problem,) = Choices.read({"other_text": "x" * 1_200})
    assert len(found.other_text) == 1_000 and "1,200 characters" in problem.sentence


def test_tokens_and_names_are_never_markup():
    at = two(two="sentences", other_text="<b>x</b> </script> it")
    specs = "".join(chart.proto.spec for chart in at.get("plotly_chart"))
    assert "<b>x</b>" not in specs and "</script>" not in specs


def test_a_rerun_opens_no_other_model_and_matches_nothing_again(monkeypatch):
    at = two(other="", two="models")
    opened, honest = [], loading.get_lab
    monkeypatch.setattr(loading, "get_lab", lambda name: opened.append(name) or honest(name))
    monkeypatch.setattr(HeadMatching, "data", lambda *_: pytest.fail("heads are matched again"))
    checked(at.run())
    assert set(opened) == {PRONOUNS, at.selectbox(key="two-other").value}
