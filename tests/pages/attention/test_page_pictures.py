"""The controls of the picture on the Attention page: each turned, each in the URL, each nonsense answered."""

import base64
import json

import numpy as np
import pytest
from page_exports import with_menus
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, component, matrix, open_page, texts

from pages.shared.url.view_state import View
from pages.shared.wording import plain
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")


def attention(**parameters):
    return open_page("attention", popovers=["drawer"], **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def values(data):
    return np.frombuffer(base64.b64decode(data["values"]), np.float32).reshape(data["shape"])


def recorded(kind="cross"):
    return load(PRONOUNS).inspect(CLASSIC).attention(kind).weights


def view_of(at):
    return View.read(at.query_params)[0]


def test_heads_are_combined_by_the_boxes():
    at = checked(attention().selectbox(key="choose-combine").set_value("mean").run())
    np.testing.assert_allclose(values(matrix(at)), recorded()[1].mean(axis=0), atol=1e-6)
    assert "mean of all heads" in texts(at)
    at = checked(at.multiselect(key="choose-over").set_value([2, 0]).run())
    assert view_of(at).over == (0, 2) and "mean of heads 0, 2" in texts(at)
    at = checked(at.selectbox(key="choose-combine").set_value("max").run())
    np.testing.assert_array_equal(values(matrix(at)), recorded()[1][[0, 2]].max(axis=0))
    at = checked(at.multiselect(key="choose-over").set_value([0, 1, 2, 3]).run())
    assert view_of(at).over == () and "largest of all heads" in texts(at)


def test_whoever_chooses_a_head_sees_that_head():
    at = attention(combine="max", over="0,1")
    at = checked(at.selectbox(key="choose-head").set_value(3).run())
    assert view_of(at).combine == "one" and "layer 1 · head 3" in texts(at)


def test_marks_and_weak_cells_are_left_out_and_the_page_says_how_much_that_is():
    at = checked(attention().selectbox(key="choose-specials").set_value("hidden").run())
    assert "</s>" not in [token["text"] for token in matrix(at)["columns"]]
    assert "Start and end marks are left out" in texts(at)
    at = checked(at.number_input(key="choose-threshold").set_value(0.2).run())
    assert view_of(at).threshold == 0.2 and "Entries below 0.2 are not drawn" in texts(at)
    state = np.frombuffer(base64.b64decode(matrix(at)["state"]), np.uint8).reshape(matrix(at)["shape"])
    np.testing.assert_array_equal(state == 2, values(matrix(at)) < 0.2)
    at = checked(at.selectbox(key="choose-specials").set_value("renormalised").run())
    np.testing.assert_allclose(values(matrix(at)).sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("show", ["weights", "norms", "rollout", "entropy"])
@pytest.mark.parametrize(
    ("kind", "picture"),
    [("encoder_self", "matrix"), ("decoder_self", "matrix"), ("cross", "matrix"), ("cross", "lines")],
)
def test_everything_is_shown_of_every_kind(kind, show, picture):
    at = attention(kind=kind, picture=picture)
    at = checked(at.selectbox(key="choose-show").set_value(show).run())
    assert at.query_params.get("show", "weights") == show
    as_lines = picture == "lines" and show != "entropy"
    drawn = component(at, "weights" if as_lines else "row_notes")
    assert drawn is not None
    if picture == "lines" and show == "entropy":
        assert "there are no lines to draw" in texts(at)
    if show == "rollout" and picture == "matrix":
        assert drawn["unclickable"] and "A click does nothing here" in texts(at)


def test_marks_are_left_out_of_entropy_in_one_way_alone():
    at = attention(show="entropy", specials="renormalised")
    box = at.selectbox(key="choose-specials")
    assert box.options == ["Shown", "Left out"] and box.value == "hidden"
    assert "left out only as rows; they still count as keys" in texts(at)
    assert "rows alone" not in texts(attention(show="entropy"))
    at = checked(at.selectbox(key="choose-show").set_value("weights").run())
    assert at.selectbox(key="choose-specials").value == "renormalised" and view_of(at).specials == "renormalised"


@pytest.mark.parametrize(
    ("threshold", "shown"), [("0.1", "%.2f"), ("0.125", "%.3f"), ("0.0625", "%.4f"), ("0", "%.2f")]
)
def test_a_threshold_is_shown_with_all_its_decimals(threshold, shown):
    box = attention(threshold=threshold).number_input(key="choose-threshold")
    assert box.proto.format == shown and box.value == float(threshold)


def test_entropy_has_a_unit():
    at = attention(show="entropy")
    at = checked(at.selectbox(key="choose-unit").set_value("bits").run())
    assert matrix(at)["unit"] == "bits" and view_of(at).unit == "bits"
    assert np.nanmax(values(matrix(at))) <= np.log2(recorded().shape[-1]) + 1e-5


@pytest.mark.parametrize("view", ["bertviz", "bertviz-model", "bertviz-neuron"])
def test_each_view_of_bertviz_is_chosen_and_cut_as_the_matrix_is(view):
    at = attention(picture="bertviz", specials="hidden")
    at = checked(at.segmented_control(key="choose-bertviz").set_value(view).run())
    (frame,) = at.get("iframe")
    found = frame.proto.srcdoc
    assert "window.bertviz_params" in found
    assert ('"</s>"' in found.replace("\\u003c", "<")) == (view == "bertviz-neuron")
    said = (
        "Here start and end marks stay: each query and key"
        if view == "bertviz-neuron"
        else "Start and end marks are left out"
    )
    assert said in texts(at)


@pytest.mark.parametrize("picture", ["matrix", "lines", "bertviz", "bertviz-model", "bertviz-neuron"])
def test_a_head_that_is_off_is_drawn_as_such_in_every_picture(picture):
    at = attention(picture=picture, switch="off:decoder.1.cross:0")
    if picture.startswith("bertviz"):
        (frame,) = at.get("iframe")
        assert '"off": [[1, 0]]' in frame.proto.srcdoc and "Grey: switched off" in frame.proto.srcdoc
    else:
        drawn = component(at, "weights" if picture == "lines" else "row_notes")
        shown = [json.loads(e.proto.json) for e in at.get("bidi_component")]
        assert any(data.get("off") is True for data in shown), drawn
        assert "This head is off" in texts(at)


def test_a_sublayer_that_is_off_is_drawn_as_such_and_nothing_of_it_arrives():
    at = attention(switch="block:decoder.1.cross", cell="1,2")
    assert matrix(at)["off"] and "**off**" in texts(at) and "This block is off" in texts(at)
    assert component(at, "at_mean")["off"] == [[1, head] for head in range(4)]
    assert "nothing of this entry reached the output" in texts(at)
    at = checked(at.selectbox(key="choose-show").set_value("norms").run())
    assert not values(matrix(at)).any() and "every norm is 0" in texts(at)
    assert "This block is off" not in texts(checked(at.selectbox(key="choose-layer").set_value(0).run()))


def test_norms_of_what_was_copied_are_said_to_be_0():
    at = attention(show="norms", switch="copy:decoder.1.cross.heads:1>1:The cat slept.")
    assert not values(matrix(at))[1].any() and values(matrix(at))[0].any()
    assert "where it did, norms are 0" in texts(at)


def test_weights_of_what_was_copied_are_said_to_go_no_further():
    switch = "copy:decoder.1.cross.heads.2:1>1:The cat slept."
    said = "where it did, what is attended to here goes no further"
    assert said in texts(attention(switch=switch, head="2")) and said in texts(attention(switch=switch, combine="max"))
    assert said not in texts(attention(switch=switch, head="1"))
    assert said not in texts(attention(switch=switch, head="2", layer="0"))


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        (["mean:decoder.1.cross:0,2"], "**at their mean**"),
        (["mean:decoder.1.cross:0", "off:decoder.1.cross:2"], "**off or at their mean**"),
        (["off:decoder.1.cross:0,2"], "**off**"),
    ],
)
def test_combined_heads_are_called_off_only_where_they_are(switch, said):
    assert f"mean of heads 0, 2 · {said}" in texts(attention(combine="mean", over="0,2", switch=switch))


def test_the_neuron_view_draws_later_keys_wherever_they_are_seen():
    for switch, everything in [([], "false"), (["mask:causal", "forbid:decoder.0.self:2,1"], "true")]:
        (frame,) = attention(kind="decoder_self", picture="bertviz-neuron", switch=switch).get("iframe")
        assert f'"bidirectional": {everything}' in frame.proto.srcdoc


@pytest.mark.parametrize("picture", ["matrix", "lines", "bertviz", "bertviz-neuron"])
def test_a_head_at_its_mean_is_not_called_off(picture):
    at = attention(picture=picture, switch="mean:decoder.1.cross:0")
    assert component(at, "at_mean")["at_mean"] == [[1, 0]] and component(at, "at_mean")["off"] == []
    if picture == "matrix":
        assert "at its mean**" in texts(at) and matrix(at)["off"]
        at = checked(at.selectbox(key="choose-show").set_value("norms").run())
        assert "This head is at its mean" in texts(at) and not values(matrix(at)).any()


def test_combined_heads_name_those_that_are_off():
    at = attention(combine="mean", switch="off:decoder.1.cross:0,2")
    assert "Of these, heads 0, 2 are off" in texts(at)
    at = checked(at.selectbox(key="choose-show").set_value("norms").run())
    assert "counted with norms of 0" in texts(at)


def test_the_explanation_fits_the_picture():
    for show, figure, name in [
        ("norms", "head-matrix", "Kobayashi"),
        ("rollout", "attention-rollout", "Abnar"),
        ("entropy", "attention-entropy", "how widely"),
    ]:
        assert name in texts(with_menus(attention(show=show), f"{figure}-explained"))
    for kind in ("cross", "encoder_self"):
        explained = texts(with_menus(attention(show="rollout", kind=kind), "attention-rollout-explained"))
        assert ("Ferrando" in explained) == (kind == "cross")


def test_rollout_that_means_nothing_is_answered_in_a_sentence():
    at = attention(show="rollout", switch="mask:causal")
    assert "they cannot be multiplied" in texts(at) and matrix(at) is None
    at = checked(at.selectbox(key="choose-show").set_value("weights").run())
    assert matrix(at)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"show": "everything"}, "must be one of: weights, norms, rollout, entropy; weights is used"),
        ({"unit": "hartleys"}, "must be one of: nats, bits"),
        ({"combine": "sum"}, "must be one of: one, mean, max"),
        ({"over": "0,9", "combine": "mean"}, "heads 0 to 3 in every layer"),
        ({"over": "a"}, "over “a”, which must be a whole number"),
        ({"threshold": "2"}, "must lie between 0 and 1"),
        ({"threshold": "nan"}, "must lie between 0 and 1"),
        ({"specials": "<b>"}, "must be one of: shown, hidden, renormalised"),
        ({"words": "yes"}, "words “yes”, which must be merged"),
    ],
)
def test_nonsense_in_a_link_is_answered_beside_the_picture(parameters, said):
    at = attention(**parameters)
    assert plain(said) in texts(at) and matrix(at)


def test_what_was_chosen_travels_to_another_model():
    at = attention(show="norms", combine="mean", over="1,3", threshold="0.1", specials="hidden", kind="encoder_self")
    at = checked(at.radio(key="choose-model").set_value(REVERSE).run())
    expected = View(model=REVERSE, kind="encoder_self", show="norms", combine="mean", over=(1, 3), threshold=0.1)
    assert view_of(at).show == expected.show and view_of(at).over == expected.over
    assert view_of(at).threshold == expected.threshold and view_of(at).specials == "hidden"


def test_words_are_merged_where_a_link_asks_for_it():
    at = attention(words="merged")
    assert "summed over its pieces" in texts(at)
    np.testing.assert_array_equal(values(matrix(at)), recorded()[1, 0])  # in this model each word is one piece
    at = checked(at.toggle(key="choose-words").set_value(False).run())
    assert "words" not in at.query_params


def test_a_cell_stays_framed_where_the_picture_shows_it():
    assert matrix(attention(cell="3,2"))["chosen"] == [3, 2]
    assert matrix(attention(cell="3,2", show="entropy", layer="1", head="2"))["chosen"] == [3, 6]
    last = recorded().shape[-1] - 1
    assert matrix(attention(cell=f"3,{last}", specials="hidden"))["chosen"] is None


def test_a_link_to_a_head_shows_that_head_whatever_was_combined_before():
    view = View(model="m", text="t", picture="lines", show="rollout", combine="max", over=(1,), cell=(1, 1), words=True)
    found = view.at_head("decoder_self", 1, 2)
    assert (found.kind, found.layer, found.head) == ("decoder_self", 1, 2)
    assert (found.picture, found.show, found.combine, found.cell) == ("matrix", "weights", "one", None)
    assert (found.model, found.text, found.words) == ("m", "t", True)
