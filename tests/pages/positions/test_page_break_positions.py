"""Positions, broken: removed, shuffled, shifted, scaled, made equal, and the output compared."""

import pytest
from page_models import CLASSIC, PRONOUNS, checked, texts
from page_positions import positions

from pages.shared.wording import effect, plain
from transformer.interventions import parse_intervention
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")


def removable(at):
    return [b.label for b in at.button if (b.key or "").startswith("remove-positions")]


@pytest.mark.parametrize(
    ("edit", "switch"),
    [
        ("remove", "positions:encoder:remove"),
        ("shuffle", "positions:encoder:shuffle:1"),
        ("shift", "positions:encoder:shift:1"),
        ("scale", "positions:encoder:scale:2"),
        ("same", "positions:encoder:same:0,1"),
    ],
)
def test_positions_are_broken_and_the_output_compared(edit, switch):
    at = positions(section="break")
    assert "**The output" not in texts(at)
    at = checked(at.button_group(key="break-edit").set_value(edit).run())
    assert at.query_params["switch"] == switch and len(removable(at)) == 1
    said, measures = effect(load(PRONOUNS).compare(CLASSIC, [parse_intervention(switch)]))
    (told,) = (text for text in at.markdown if said in text.value)
    assert measures in told.help
    at = checked(at.button_group(key="break-edit").set_value("").run())
    assert "switch" not in at.query_params and removable(at) == []


def test_the_output_as_it_is_invites_to_what_can_be_changed_here():
    said = texts(positions(section="break"))
    assert "Change the positions above" in said and "Switch a head off" not in said


def test_how_positions_are_broken_can_be_chosen():
    at = positions(section="break", switch="positions:encoder:shift:2")
    at = checked(at.slider(key="break-shift").set_value(5).run())
    assert at.query_params["switch"] == "positions:encoder:shift:5"
    assert "takes its last row" in texts(at)
    at = checked(at.button_group(key="break-edit").set_value("scale").run())
    at = checked(at.selectbox(key="break-scale").set_value(0.25).run())
    assert at.query_params["switch"] == "positions:encoder:scale:0.25"
    at = checked(at.button_group(key="break-edit").set_value("shuffle").run())
    at = checked(at.button(key="break-again").click().run())
    assert at.query_params["switch"] == "positions:encoder:shuffle:2"
    at = checked(at.button_group(key="break-edit").set_value("same").run())
    at = checked(at.multiselect(key="break-same").set_value([0]).run())
    assert at.query_params["switch"] == "positions:encoder:same:0,1"  # one token alone changes nothing yet
    at = checked(at.multiselect(key="break-same").set_value([0, 1, 4]).run())
    assert at.query_params["switch"] == "positions:encoder:same:1,4"


def test_both_stacks_can_be_broken_and_the_view_travels_to_attention():
    at = positions(section="break", switch="positions:encoder:remove")
    at = checked(at.button_group(key="positions-stack").set_value("decoder").run())
    assert "shuffle" not in at.button_group(key="break-edit").options
    at = checked(at.button_group(key="break-edit").set_value("shift").run())
    assert at.query_params["switch"] == ["positions:encoder:remove", "positions:decoder:shift:1"]
    assert "without the key/value cache" in texts(at)
    at.query_params.clear()
    at = checked(at.switch_page("pages/attention/page.py").run())
    assert len(removable(at)) == 2
    assert at.query_params["switch"] == ["positions:encoder:remove", "positions:decoder:shift:1"]


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("positions:encoder:scale:1", "a scale (1) must lie above 0"),
        ("positions:encoder:same:0,18", "the sentence has tokens 0 to 13"),
        ("positions:encoder:wobble", "The link has a switch “positions:encoder:wobble” that cannot be read"),
    ],
)
def test_nonsense_positions_in_a_link_are_answered_in_a_sentence(switch, said):
    at = positions(section="break", switch=switch)
    assert plain(said) in texts(at) and removable(at) == []


def test_a_sentence_too_short_for_the_two_tokens_drops_the_switch_with_a_sentence():
    at = positions(section="break", switch="positions:encoder:same:0,12")
    at = checked(at.text_input(key="choose-text").set_value("The animal.").run())
    assert "token 12 stands where token 0 does” is left out: the sentence has tokens 0 to 3" in texts(at).replace(
        "\\", ""
    )
    assert removable(at) == [] and at.text_input(key="choose-text").value == "The animal."


def test_a_model_without_added_positions_has_nothing_to_break(own_models):
    path = own_models / PRONOUNS / "config.json"
    path.write_text(path.read_text().replace('"positions": "sinusoidal"', '"positions": "rotary"'))
    at = positions(section="break", switch="positions:encoder:remove")
    assert "adds nothing to its embeddings" in texts(at) and removable(at) == []
