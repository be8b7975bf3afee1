"""The switch panel: every control turned, every switch in the URL and on a chip, every nonsense a sentence."""

import base64

import numpy as np
import pytest
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, field, matrix, open_page, texts

from pages.shared.url.view_state import View
from pages.shared.wording import plain
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
    merged,
    parse_intervention,
)
from transformer.lab import load
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Site

OTHER = "The cat slept."


pytestmark = pytest.mark.usefixtures("untrained_models")


def attention(**parameters):
    return open_page("attention", **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def panel(section="Parts", **parameters):
    """The Attention page with the panel open at a section."""
    at = open_page("attention", **{"model": PRONOUNS, "text": CLASSIC, **parameters})
    at.session_state["drawer"] = True
    at = checked(at.run())
    return at if section == "Parts" else checked(field(at.button_group, "What to switch").set_value(section).run())


def removable(at):
    """The switches that have a chip."""
    return [
        button.label for button in at.button if (button.key or "").startswith("remove-") and "all" not in button.key
    ]


def offer(at):
    return at.button(key="switch-offer")


def test_a_closed_panel_draws_nothing():
    at = open_page("attention", model=PRONOUNS, text=CLASSIC)
    assert not [box for box in at.button_group if (box.key or "").startswith("parts-")]


@pytest.mark.parametrize(
    ("sublayer", "part", "switch"),
    [
        ("decoder-1-cross", AblateHeads("decoder", 1, "cross", (2,)), "off:decoder.1.cross:2"),
        ("encoder-0-ffn", AblateSublayer("encoder", 0, "ffn"), "block:encoder.0.ffn"),
        ("decoder-0-self", AblateSublayer("decoder", 0, "self"), "block:decoder.0.self"),
        ("encoder-1-self", AblateResidual("encoder", 1, "self"), "residual:off:encoder.1.self"),
        ("decoder-1-ffn", AblateResidual("decoder", 1, "ffn"), "residual:off:decoder.1.ffn"),
    ],
)
def test_every_part_of_every_sublayer_is_switched_by_its_pill_and_taken_back_by_its_chip(sublayer, part, switch):
    at = panel()
    at = checked(at.button_group(key=f"parts-{sublayer}").set_value([part]).run())
    assert at.query_params["switch"] == switch
    assert removable(at) == [plain(part.label())]
    at = checked(at.button(key=f"remove-{switch}").click().run())
    assert "switch" not in at.query_params and at.button_group(key=f"parts-{sublayer}").value == []


def test_heads_go_to_zero_or_to_their_mean_and_one_head_to_one_of_both():
    at = panel(switch="off:decoder.1.cross:0,1")
    at = checked(field(at.button_group, "Set heads to").set_value(MeanAblateHeads).run())
    assert "Means over" in texts(at) and "measured here" in texts(at)
    pills = at.button_group(key="parts-decoder-1-cross")
    assert pills.value == []
    at = checked(
        pills.set_value(
            [MeanAblateHeads("decoder", 1, "cross", (1,)), MeanAblateHeads("decoder", 1, "cross", (3,))]
        ).run()
    )
    assert at.query_params["switch"] == ["off:decoder.1.cross:0", "mean:decoder.1.cross:1,3"]
    assert any("heads 1, 3 at the mean" in label for label in removable(at))


def test_masks_are_lifted():
    at = panel("Masks")
    at = checked(field(at.button_group, "Masks off").set_value(["causal", "padding", "cross"]).run())
    assert at.query_params["switch"] == ["mask:causal", "mask:padding", "mask:cross"]
    at = checked(at.button(key="remove-all").click().run())
    assert removable(at) == [] and field(at.button_group, "Masks off").value == []


def test_a_cell_is_forbidden_in_any_sublayer():
    at = panel("Cell")
    at = checked(field(at.selectbox, "Attention").set_value((AttentionKind.ENCODER_SELF, 0)).run())
    at = checked(at.selectbox(key="cell-query-encoder_self").set_value(4).run())
    at = checked(at.selectbox(key="cell-key-encoder_self").set_value(2).run())
    at = checked(offer(at).click().run())
    assert at.query_params["switch"] == "forbid:encoder.0.self:4,2"
    assert offer(at).disabled and offer(at).label == "Applied"


def test_heads_are_scaled_in_any_sublayer_and_a_factor_of_one_is_said_to_change_nothing():
    at = panel("Scale", kind="encoder_self", layer="1", head="2")
    at = checked(offer(at).click().run())
    assert at.query_params["switch"] == "scale:encoder.1.self:2:0.5"
    assert removable(at) == [plain("encoder self-attention · layer 1 · head 2 times 0.5")]
    at = checked(field(at.button_group, "Heads").set_value([1, 2]).run())
    at = checked(field(at.slider, "Factor").set_value(1.0).run())
    at = checked(offer(at).click().run())
    assert at.query_params["switch"] == "scale:encoder.1.self:1,2:1"  # in place of the other: one head has one factor
    assert plain("heads 1, 2 times 1: a factor of 1 changes nothing.") in texts(at)
    at = checked(field(at.button_group, "Heads").set_value([]).run())
    assert plain("names no head and would do nothing.") in texts(at) and offer(at).disabled


@pytest.mark.parametrize("factor", ["nan", "inf", "-0.5", "2.01"])
def test_a_link_with_a_factor_that_is_out_of_range_is_answered_in_a_sentence(factor):
    at = attention(switch=f"scale:decoder.0.cross:1:{factor}")
    assert plain("must be a number from 0 to 2.") in texts(at) and removable(at) == []


def test_a_row_is_overwritten_evenly_on_one_key_and_with_own_numbers():
    at = panel("Row", kind="encoder_self", layer="0")
    at = checked(at.selectbox(key="row-query-encoder_self").set_value(3).run())
    at = checked(offer(at).click().run())
    assert at.query_params["switch"] == "row:encoder.0.self.0:3:uniform"
    at = checked(field(at.button_group, "Weights").set_value("key").run())
    at = checked(next(box for box in at.selectbox if box.label == "Key" and "row" in box.key).set_value(5).run())
    at = checked(offer(at).click().run())
    assert at.query_params["switch"] == "row:encoder.0.self.0:3:5"  # in place of the other: one row has one
    at = checked(field(at.button_group, "Weights").set_value("numbers").run())
    n_keys = len(load(PRONOUNS).sentence(CLASSIC).ids)
    numbers = at.text_area[0]
    assert len(numbers.value.split(",")) == n_keys
    at = checked(numbers.set_value(", ".join(["2", "1", "1"] + ["0"] * (n_keys - 3))).run())
    assert "They sum to 4.00: each is divided by that sum." in texts(at)
    at = checked(offer(at).click().run())
    switch = at.query_params["switch"]
    assert switch == f"row:encoder.0.self.0:3:2,1,1{',0' * (n_keys - 3)}"
    weights = load(PRONOUNS).inspect(CLASSIC, [parse_intervention(switch)]).encoder_self.weights[0, 0, 3]
    assert weights.tolist() == [0.5, 0.25, 0.25] + [0.0] * (n_keys - 3)
    assert plain("divided by their sum 4") in plain(removable(at)[0])


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1, 2", "The row has 14 keys, and 2 numbers are given: it needs one for each."),
        ("a, b", "These are not numbers"),
        (", ".join(["0"] * 14), "The weights sum to 0 and cannot be divided by that."),
        (", ".join(["-1"] + ["1"] * 13), "The weight of key 0 (-1) is negative: weights are 0 or more."),
        (", ".join(["nan"] + ["1"] * 13), "The weight of key 0 (nan) is not a finite number."),
        ("", "The row has 14 keys, and 0 numbers are given"),
    ],
)
def test_numbers_that_cannot_be_weights_are_said_at_the_field_and_stay_there(typed, said):
    assert len(load(PRONOUNS).sentence(CLASSIC).ids) == 14
    at = panel("Row", kind="encoder_self", layer="0")
    at = checked(field(at.button_group, "Weights").set_value("numbers").run())
    at = checked(at.text_area[0].set_value(typed).run())
    assert plain(said) in texts(at) or (said.startswith("The row has 14 keys, and 0") and "single key" in texts(at))
    assert offer(at).disabled and at.text_area[0].value == typed
    assert "switch" not in at.query_params


def test_an_activation_is_copied_from_a_sentence_that_the_visitor_types():
    at = panel("Copy")
    at = checked(at.text_input(key="copy-text").set_value(OTHER).run())
    at = checked(at.selectbox(key="copy-block").set_value(("encoder", 0, "self")).run())
    at = checked(field(at.selectbox, "What").set_value("heads").run())
    at = checked(at.selectbox(key="copy-head").set_value(2).run())
    at = checked(field(at.selectbox, "From").set_value(1).run())
    at = checked(field(at.selectbox, "Onto").set_value(3).run())
    at = checked(offer(at).click().run())
    switch = f"copy:encoder.0.self.heads.2:1>3:{OTHER}"
    assert at.query_params["switch"] == switch
    spec = PatchActivation(Site("encoder", 0, "self", "heads"), 2, ((1, 3),), OTHER)
    assert removable(at) == [plain(spec.label())]
    lab = load(PRONOUNS)
    assert lab.compare(CLASSIC, [spec]).kl_divergence.max() > 0


def test_all_of_a_sentence_of_another_length_cannot_be_copied_and_the_form_says_both_lengths():
    at = panel("Copy")
    at = checked(at.text_input(key="copy-text").set_value(OTHER).run())
    at = checked(field(at.selectbox, "From").set_value("all").run())
    n = len(load(PRONOUNS).sentence(OTHER).ids)
    assert plain(f"The other sentence has {n} tokens and this one 14") in texts(at)
    assert offer(at).disabled


def test_a_sentence_that_cannot_be_read_is_said_at_its_field():
    at = panel("Copy")
    at = checked(at.text_input(key="copy-text").set_value("word " * 300).run())
    assert plain("301 tokens") in texts(at)
    at = checked(at.text_input(key="copy-text").set_value("   ").run())
    assert not [button for button in at.button if button.key == "switch-offer"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("nonsense", "'nonsense' is not a switch"),
        ("forbid:encoder.9.self:1,2", "This model has no block encoder.9.self"),
        ("off:decoder.0.cross:9", "Head 9 does not exist"),
        ("forbid:encoder.0.self:40,2", "Position 40 does not exist"),
        ("forbid:encoder.0.self:17,2", "Query 17 does not exist: the sentence has tokens 0 to 13."),
        ("copy:encoder.0.ffn.output:9>0:The cat slept.", "there is no 9 to copy"),
        ("mean:encoder.0.ffn:1", "is not a switch"),
    ],
)
def test_a_typed_switch_is_taken_or_answered_in_a_sentence(typed, said):
    at = panel("By name")
    at = checked(at.text_input(key="switch-typed").set_value(typed).run())
    assert plain(said) in texts(at)
    assert at.text_input(key="switch-typed").value == typed and "switch" not in at.query_params
    at = checked(at.text_input(key="switch-typed").set_value("forbid:encoder.0.self:1,2").run())
    at = checked(offer(at).click().run())
    assert at.query_params["switch"] == "forbid:encoder.0.self:1,2"


def test_a_row_and_a_cell_that_contradict_each_other_are_said():
    at = panel("By name", switch="forbid:decoder.1.cross:2,3")
    at = checked(at.text_input(key="switch-typed").set_value("row:decoder.1.cross.0:2:3").run())
    assert plain("puts weight on key 3, which another switch forbids to row 2") in texts(at)


def test_another_sentence_drops_the_switches_that_do_not_fit_it_with_a_sentence_each():
    at = panel(switch=["forbid:encoder.0.self:12,1", "off:decoder.1.cross:0"])
    at = checked(at.text_input(key="choose-text").set_value(OTHER).run())
    assert at.query_params["text"] == OTHER
    assert at.query_params["switch"] == "off:decoder.1.cross:0"
    assert plain("is left out: query 12 does not exist: the sentence has tokens 0 to") in texts(at)


def test_a_copy_survives_its_url_and_another_model_that_cannot_read_it_leaves_it_out():
    at = panel(switch=f"copy:encoder.0.ffn.output:1>2:{OTHER}")
    assert len(removable(at)) == 1
    at = checked(at.radio(key="choose-model").set_value(REVERSE).run())
    assert "copy" in str(at.query_params.get("switch", "")) or "is left out" in texts(at)


def test_of_two_switches_for_one_thing_the_last_counts():
    mean, off = MeanAblateHeads("decoder", 0, "cross", (1, 2)), AblateHeads("decoder", 0, "cross", (2, 3))
    assert merged([mean, off]) == (
        AblateHeads("decoder", 0, "cross", (2, 3)),
        MeanAblateHeads("decoder", 0, "cross", (1,)),
    )
    assert merged([off, mean]) == (
        AblateHeads("decoder", 0, "cross", (3,)),
        MeanAblateHeads("decoder", 0, "cross", (1, 2)),
    )
    row = ("decoder", 0, "cross", 1, 2)
    assert merged([SetAttentionRow(*row, "uniform"), SetAttentionRow(*row, 3)]) == (SetAttentionRow(*row, 3),)
    assert len(merged([SetAttentionRow(*row, "uniform"), SetAttentionRow(*row[:3], 0, 2, 3)])) == 2


def test_a_link_with_two_switches_for_one_head_says_which_counts():
    at = attention(switch=["off:decoder.0.cross:1", "mean:decoder.0.cross:1"])
    assert at.query_params["switch"] == "mean:decoder.0.cross:1"
    assert plain("head 1 off” gives way to “cross-attention · layer 0 · head 1 at the mean”") in texts(at)


def test_every_kind_of_switch_fits_a_model_that_has_it():
    switches = (
        AblateHeads("decoder", 0, "cross", (0,)),
        ScaleHeads("decoder", 1, "self", (0, 3), 1.5),
        MeanAblateHeads("encoder", 1, "self", (2,)),
        DisableMask("causal"),
        MaskEntry("decoder", 1, "cross", 1, 2),
        SetAttentionRow("decoder", 1, "self", 0, 1, (1, 3)),
        AblateResidual("decoder", 0, "ffn"),
        PatchActivation(Site("encoder", 0, "ffn", "output"), None, ((1, 2),), OTHER),
    )
    view = View(model=PRONOUNS, text=CLASSIC, switches=switches)
    assert view.fit(load(PRONOUNS)) == (view, ())


def test_the_panel_is_on_the_decoder_steps_page_too():
    at = open_page("steps", model=PRONOUNS, text=CLASSIC)
    at.session_state["switches"] = True
    at = checked(at.run())
    at = checked(at.button_group(key="parts-decoder-1-ffn").set_value([AblateSublayer("decoder", 1, "ffn")]).run())
    assert at.query_params["switch"] == "block:decoder.1.ffn" and len(removable(at)) == 1


def state(at):
    """Returns the state drawn for each cell of the matrix: 1 masked, 3 forbidden by a switch."""
    data = matrix(at)
    if data["state"] is None:
        return np.zeros(data["shape"], np.uint8)
    return np.frombuffer(base64.b64decode(data["state"]), np.uint8).reshape(data["shape"])


def test_what_a_click_does_is_chosen_is_in_the_url_and_is_said():
    at = attention(kind="encoder_self", layer="0", popovers=["drawer"])
    assert not matrix(at)["forbids"]
    at = checked(at.segmented_control(key="choose-click").set_value("forbid").run())
    assert at.query_params["click"] == "forbid" and matrix(at)["forbids"]
    assert "to forbid it in all heads of layer 0" in texts(at)
    for show in ("entropy", "rollout"):
        assert not matrix(attention(click="forbid", show=show))["forbids"]
    assert "it cannot be forbidden: a click explains it" in texts(attention(click="forbid", words="merged"))
    assert plain("click “burn”, which must be one of: open, forbid") in texts(attention(click="burn"))


@pytest.mark.parametrize("specials", ["shown", "hidden"])
def test_a_cell_that_a_switch_forbids_is_drawn_as_such_where_it_stands(specials):
    at = attention(kind="decoder_self", layer="0", specials=specials, switch="forbid:decoder.0.self:3,1")
    found = state(at)
    shift = specials == "hidden"  # the start mark has no row and no column
    assert list(zip(*np.nonzero(found == 3), strict=True)) == [(3 - shift, 1 - shift)]
    assert found[0, 1] == 1
    assert not (state(attention(kind="decoder_self", layer="1", switch="forbid:decoder.0.self:3,1")) == 3).any()


def test_a_click_on_a_cell_forbids_it_and_the_next_allows_it_again():
    view = View(model="m", text="t", kind="cross", switches=(parse_intervention("off:decoder.0.cross:1"),))
    once = view.with_entry_flipped(0, 3, 2)
    assert list(map(str, once.switches)) == ["off:decoder.0.cross:1", "forbid:decoder.0.cross:3,2"]
    assert once.with_entry_flipped(0, 3, 2) == view
    assert [str(s) for s in once.with_entry_flipped(1, 3, 2).switches][-1] == "forbid:decoder.1.cross:3,2"
