"""Attention: every control turned, every effect measured, every nonsense answered in a sentence."""

import re
from typing import get_args

import pytest
from page_exports import with_menus
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, matrix, open_page, texts

from pages.attention.entry_panel import equation
from pages.shared.url.view_state import Picture, View
from pages.shared.wording import change, effect, heads_left, moved, number, plain, pronoun_effect, smoothed, token
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.figures.theme import greys, sequential
from transformer.interventions import AblateHeads, DisableMask, MaskEntry, merged
from transformer.lab import load
from transformer.text.tokenizer import SPECIALS, WordTokenizer

pytestmark = pytest.mark.usefixtures("untrained_models")

_BLOCKS = {"cross": "decoder.1.cross", "decoder_self": "decoder.1.self", "encoder_self": "encoder.1.self"}


def attention(**parameters):
    return open_page("attention", popovers=["drawer"], **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def removable(at):
    """The switches that have a chip."""
    return [
        button.label for button in at.button if (button.key or "").startswith("remove-") and "all" not in button.key
    ]


def test_the_last_layers_cross_attention_is_shown_first():
    at = attention()
    assert "Cross-attention · layer 1 · head 0" in texts(at)
    assert removable(at) == []
    assert matrix(at)["shape"] == list(load(PRONOUNS).inspect(CLASSIC).cross.weights.shape[2:])


def test_the_sentence_is_cut_once_whatever_is_drawn(monkeypatch):
    text, calls = "The dog slept because it was tired .", []
    encode = WordTokenizer.encode
    monkeypatch.setattr(WordTokenizer, "encode", lambda self, given: calls.append(given) or encode(self, given))
    at = attention(text=text, switch="off:decoder.1.cross:0")
    assert calls.count(text) == 1
    checked(at.segmented_control(key="choose-kind").set_value("encoder_self").run())
    attention(text=text)
    assert calls.count(text) == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("encoder_self", "Encoder self-attention"),
        ("decoder_self", "Decoder self-attention"),
        ("cross", "Cross-attention"),
    ],
)
def test_each_kind_layer_and_head_can_be_chosen_and_is_in_the_url(kind, name):
    at = attention()
    at = checked(at.segmented_control(key="choose-kind").set_value(kind).run())
    at = checked(at.selectbox(key="choose-layer").set_value(0).run())
    at = checked(at.selectbox(key="choose-head").set_value(3).run())
    assert f"{name} · layer 0 · head 3" in texts(at)
    assert View.read({key: [value] for key, value in at.query_params.items()})[0].layer == 0
    assert at.query_params.get("kind", "cross") == kind
    assert at.query_params["head"] == "3"


@pytest.mark.parametrize("picture", get_args(Picture))
@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_each_picture_of_each_kind_is_drawn(kind, picture):
    at = attention(kind=kind, picture=picture)
    assert (matrix(at) is not None) == (picture == "matrix")
    assert len(at.get("iframe")) == picture.startswith("bertviz")


def test_the_shown_head_is_switched_off_and_on_again():
    at = attention(layer="0", head="2")
    at = checked(at.toggle(key="switch-head").set_value(False).run())
    switch = AblateHeads("decoder", 0, "cross", (2,))
    assert removable(at) == [plain(switch.label())]
    assert at.query_params["switch"] == str(switch)
    comparison = load(PRONOUNS).compare(CLASSIC, [switch])
    said, measures = effect(comparison)
    (told,) = (element for element in at.markdown if said in element.value)
    assert measures in told.help
    at = checked(at.button(key=f"remove-{switch}").click().run())
    assert removable(at) == [] and at.toggle(key="switch-head").value
    assert "switch" not in at.query_params


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_half_a_sentence_lost_is_not_called_one_changed_token():
    comparison = load("pronouns-en-fr").compare(CLASSIC, [AblateHeads("decoder", 1, "cross", (0, 1))])
    lost, new = map(sum, comparison.marks)
    assert lost > 5 > new > 0
    said, measures = effect(comparison)
    assert f"{lost} of {len(comparison.before.target_ids)} tokens were replaced by {new} other" in said
    assert "teacher-forced" not in said and "KL divergence" in measures


def test_the_plain_sentence_names_the_token_that_moved_most():
    comparison = load(PRONOUNS).compare(CLASSIC, [AblateHeads("decoder", 1, "cross", (0, 1, 2, 3))])
    step, shift = comparison.largest_shift
    said, measures = effect(comparison)
    move, difference = change(float(comparison.forced_before[step]), float(comparison.forced_after[step]))
    name = token(comparison.before.target_tokens[step])
    still = "" if comparison.output_changed else ", and it is still the most probable token"
    assert said.endswith(f"The probability of {name} {'falls' if shift < 0 else 'rises'} the most: {move}{still}.")
    assert f"{difference} at step {step}" in measures


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (0.98, 0.0141, "from 0.980 to 0.0141"),
        (0.19641, 0.19638, "from 0.19641 to 0.19638"),
        (0.99996, 0.99951, "from 1.000 to 0.9995"),
        (3.21e-7, 3.2149e-7, "from 3.21 × 10⁻⁷ to 3.215 × 10⁻⁷"),
        (0.25, 0.25, "from 0.250 to exactly the same"),
    ],
)
def test_two_numbers_that_differ_are_never_written_alike(before, after, said):
    assert moved(before, after) == said


@pytest.mark.parametrize("kind", ["cross", "decoder_self", "encoder_self"])
def test_one_row_of_the_head_is_told_in_words(kind):
    place = {"kind": kind, "layer": "1", "head": "2"}
    told = re.findall(r"for example, (.+) looks most at (.+) \((.+)\)", texts(attention(**place)))
    drawn = load(PRONOUNS).inspect(CLASSIC).attention(kind)
    in_words = [
        (token(drawn.queries[row]), token(drawn.keys[key]), f"{drawn.weights[1, 2, row, key]:.2f}")
        for row, key in enumerate(drawn.weights[1, 2].argmax(axis=1))
        if not {drawn.queries[row], drawn.keys[key]} & set(SPECIALS)
    ]
    assert told == in_words[:1]
    for other in ({"picture": "bertviz"}, {"show": "norms"}, {"combine": "mean"}, {"switch": f"off:{_BLOCKS[kind]}:2"}):
        assert "for example" not in texts(attention(**place, **other))


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
def test_the_row_of_the_pronoun_is_told_first():
    said = texts(open_page("attention", model="pronouns-en-fr", text=CLASSIC))
    assert "Cross-attention · layer 1 · head 0 · for example, *il* looks most at *animal* (1.00)" in said


@pytest.mark.skipif(not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there")
@pytest.mark.parametrize("head", range(4))
def test_other_heads_that_look_where_a_silent_one_did_are_named_with_their_weights(head):
    lab = load("pronouns-en-fr")
    comparison = lab.compare(CLASSIC, [AblateHeads("decoder", 1, "cross", (head,))])
    step = comparison.before.target_tokens.index("il")
    said, after = heads_left(comparison), comparison.after.cross.weights
    if comparison.output_changed:
        assert said == ""
        return
    key = comparison.before.cross.weights[1, head, step].argmax()
    named = {tuple(map(int, place)) for place in re.findall(r"layer (\d)'s head (\d)", said)}
    expected = {(layer, other) for layer in range(2) for other in range(4) if after[layer, other, step, key] >= 0.5}
    assert named == expected - {(1, head)} and token(comparison.before.source_tokens[key]) in said
    two_off = lab.compare(CLASSIC, [AblateHeads("decoder", 1, "cross", (head, (head + 1) % 4))])
    assert heads_left(two_off) == "" == heads_left(lab.compare(CLASSIC, [DisableMask("padding")]))


def test_the_pronouns_own_move_is_told(monkeypatch):
    comparison = load(PRONOUNS).compare(CLASSIC, [AblateHeads("decoder", 1, "cross", (0, 1, 2, 3))])
    step = (comparison.largest_shift[0] + 1) % len(comparison.before.target_ids)
    monkeypatch.setattr("pages.shared.wording.pronoun_step", lambda inspection: step)
    p, q = comparison.forced_before[step], comparison.forced_after[step]
    (said,) = pronoun_effect(comparison)
    move, difference = change(float(p), float(q))
    assert f"{move} ({difference})" in said


def test_a_head_that_is_off_is_drawn_grey_and_called_off():
    on, off = attention(head="0"), attention(head="0", switch="off:decoder.1.cross:0")
    assert "head 0 · **off**" in texts(off) and "its output is set to zero" in texts(off)
    assert "This head is off" not in texts(on)
    scales = [matrix(at)["scales"]["light"] for at in (on, off)]
    assert [scale[-1] for scale in scales] == [sequential()[-1][1], greys()[-1][1]]


def test_where_probabilities_stand_the_page_says_why_none_is_1():
    smoothing = load(PRONOUNS).checkpoint.settings.train.label_smoothing
    assert smoothing > 0 and f"label smoothing {smoothing:g}" in texts(attention())
    assert smoothed(0.0) == ""


def test_all_heads_of_a_sublayer_go_off_together():
    at = attention(kind="encoder_self", layer="1")
    at = checked(at.button(key="switch-block").click().run())
    assert at.query_params["switch"] == "off:encoder.1.self:0,1,2,3"
    at = checked(at.toggle(key="switch-head").set_value(True).run())
    assert at.query_params["switch"] == "off:encoder.1.self:1,2,3"
    assert at.button(key="switch-block").label == "Switch all 4 off"
    at = checked(at.button(key="switch-block").click().run())
    assert at.button(key="switch-block").label == "Switch all 4 on"
    at = checked(at.button(key="switch-block").click().run())
    assert "switch" not in at.query_params


def test_without_the_causal_mask_the_page_says_that_the_cache_is_not_used():
    at = attention(kind="decoder_self", switch="mask:causal")
    assert "cache is therefore not used" in texts(at)
    assert "the last whole pass" in texts(at)


def test_a_padding_mask_changes_nothing_for_one_sentence_and_the_page_says_so_with_a_number():
    at = attention(switch="mask:padding")
    assert "**The output did not change.**" in texts(at)
    assert "nothing for it to hide" in texts(at)
    comparison = load(PRONOUNS).compare(CLASSIC, [DisableMask("padding")])
    assert comparison.largest_shift[1] == pytest.approx(0, abs=1e-6)
    said, measures = effect(comparison)
    assert said in texts(at) and "beyond rounding: by at most" in said and "KL divergence at most" in measures


def test_the_numbers_are_checked_on_the_spot():
    at = attention(switch="off:decoder.0.cross:0,1,2,3")
    said = texts(with_menus(at, "all-heads-proof"))
    assert said.count(":material/check:") > 10 and "all hold" in said and ":material/close:" not in said


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"layer": "99"}, "Layer 99 does not exist: the decoder of untrained-pronouns has layers 0 to 1."),
        ({"layer": "-1"}, "The link says layer “-1”, which must be a whole number"),
        ({"head": "12"}, "Head 12 does not exist: untrained-pronouns has heads 0 to 3 in every layer."),
        ({"head": "٣"}, "The link says head “٣”"),
        ({"kind": "<script>"}, "which must be one of: encoder_self, decoder_self, cross; cross is used"),
        ({"picture": "oil"}, "which must be one of: matrix, lines, bertviz, bertviz-model, bertviz-neuron"),
        ({"switch": "nonsense"}, "The link has a switch “nonsense” that cannot be read"),
        ({"switch": "off:decoder.9.cross:0"}, "this model has no attention block decoder.9.cross"),
        ({"switch": "off:decoder.0.cross:7"}, "head 7 does not exist"),
        ({"switch": ["mask:causal", "mask:everything"]}, "a switch “mask:everything”"),
        ({"model": "nobody"}, "There is no model 'nobody'"),
        ({"text": "word " * 300}, "301 tokens"),
    ],
)
def test_nonsense_in_a_link_is_answered_in_a_sentence_and_the_page_goes_on(parameters, said):
    at = attention(**parameters)
    assert plain(said).strip("\u2068\u2069") in texts(at)
    assert matrix(at)
    at = checked(at.selectbox(key="choose-head").set_value(1).run())
    assert plain(said) not in texts(at)  # said once, until the next change


def test_switches_that_a_model_lacks_are_left_out_with_a_sentence():
    at = attention(switch=["off:decoder.1.cross:0", "off:decoder.0.cross:1"])
    at = checked(at.radio(key="choose-model").set_value(REVERSE).run())
    assert removable(at) == [plain(AblateHeads("decoder", 0, "cross", (1,)).label())]
    assert plain("The switch “cross-attention · layer 1 · head 0 off” is left out: this model has no") in texts(at)


def test_the_view_stays_across_pages():
    at = attention(kind="encoder_self", layer="0", head="1", switch="off:encoder.0.self:1")
    at.query_params.clear()
    at = checked(at.switch_page("pages/home/page.py").run())
    assert "head 1" in texts(at) and len(removable(at)) == 1
    at.query_params.clear()
    at = checked(at.switch_page("pages/attention/page.py").run())
    assert "Encoder self-attention · layer 0 · head 1" in texts(at)
    assert at.query_params["switch"] == "off:encoder.0.self:1"


def test_one_visitors_switches_never_reach_another():
    first, second = attention(), attention()
    before = texts(second)
    first = checked(first.button(key="switch-block").click().run())
    second = checked(second.run())
    assert removable(first) and not removable(second)
    assert texts(second) == before
    assert load(PRONOUNS).inspect(CLASSIC).interventions == ()


def test_a_view_survives_its_url():
    view = View(
        model="m",
        text="a & b = c?",
        kind="decoder_self",
        layer=0,
        head=3,
        picture="lines",
        show="norms",
        unit="bits",
        combine="mean",
        over=(0, 2),
        threshold=0.05,
        specials="renormalised",
        words=True,
        cell=(3, 0),
        switches=(AblateHeads("decoder", 0, "cross", (0, 2)), DisableMask("causal")),
    )
    assert View.read(view.parameters()) == (view, ())


def test_heads_of_one_sublayer_become_one_switch():
    specs = [AblateHeads("decoder", 0, "cross", (2,)), DisableMask("causal"), AblateHeads("decoder", 0, "cross", (0,))]
    assert merged(specs) == (AblateHeads("decoder", 0, "cross", (0, 2)), DisableMask("causal"))


def test_a_view_that_fits_is_left_alone():
    view = View(model=PRONOUNS, text=CLASSIC, layer=1, head=3, switches=(DisableMask("padding"),))
    assert view.fit(load(PRONOUNS)) == (view, ())


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (0.98, "0.980"), (-0.01412, "−0.0141"), (3.2e-7, "3.2 × 10⁻⁷"), (1.0, "1.00"), (12.345, "12.3")],
)
def test_numbers_have_three_significant_digits(value, said):
    assert number(value) == said


def test_a_cell_is_taken_apart_by_the_boxes_and_by_a_link():
    at = attention(layer="1", head="2")
    assert not at.latex[:-1] or "attended to" not in texts(at)
    at = checked(at.selectbox(key="choose-query").set_value(1).run())
    weights = load(PRONOUNS).inspect(CLASSIC).cross.weights[1, 2, 1]
    assert at.query_params["cell"] == f"1,{weights.argmax()}"
    at = checked(at.selectbox(key="choose-key").set_value(3).run())
    assert at.query_params["cell"] == "1,3"
    lab = load(PRONOUNS)
    entry = lab.explain_entry(lab.inspect(CLASSIC), "cross", 1, 2, 1, 3)
    assert equation(entry) in [latex.value.strip("$\n") for latex in at.latex]
    assert "exactly the same as in the picture" in texts(at)
    for meant in ("$c$ contribution", "$o$ sublayer output", "$v_j$ value", "$s$ score", r"d\_k", r"W\_O"):
        assert meant in texts(at), "a symbol of the sum is not explained under it"
    shown = at.dataframe[-1].value
    assert shown["weight"].tolist() == [str(weight) for weight in entry.weights]
    at = checked(at.button(key="close-entry").click().run())
    assert "cell" not in at.query_params and "exactly the same as" not in texts(at)


def test_the_mask_stands_between_the_division_and_the_softmax_of_a_cell():
    lab = load(PRONOUNS)
    entries = [
        lab.explain_entry(lab.inspect(CLASSIC, specs), "cross", 1, 2, 1, 3)
        for specs in ((), [MaskEntry("decoder", 1, "cross", 1, 3)])
    ]
    for entry, said in zip(entries, ("+ 0 =", r"- \infty = -\infty"), strict=True):
        _, divided, masked, softmax, *_ = equation(entry).split(r" \\ ")
        assert r"\sqrt{d_k}" in divided and masked.startswith(r"s' &= s + \text{mask}") and said in masked
        assert softmax.startswith(r"\alpha &=")
        assert "a switch replaced" not in equation(entry)
    off = lab.explain_entry(lab.inspect(CLASSIC, [AblateHeads("decoder", 1, "cross", (2,))]), "cross", 1, 2, 1, 3)
    assert r"c &= 0 \;\text{(a switch replaced" in equation(off)


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
@pytest.mark.parametrize("switch", ["off:decoder.1.cross:0", "mask:causal"])
def test_a_cell_of_each_kind_is_taken_apart_under_switches(kind, switch):
    at = attention(kind=kind, cell="2,1", switch=switch)
    assert "exactly the same as in the picture" in texts(at)
    off = kind == "cross" and switch.startswith("off")
    assert ("nothing of this entry reached the output" in texts(at)) == off


def test_a_key_that_did_not_exist_yet_is_said_to():
    assert "did not exist yet" in texts(attention(kind="decoder_self", cell="1,3"))


@pytest.mark.parametrize(
    ("cell", "said"),
    [("99,0", "There is no entry 99,0: this picture has rows 0 to"), ("a,b", "must be a row and a column, like 2,5")],
)
def test_a_link_to_a_cell_that_does_not_exist_is_answered_in_a_sentence(cell, said):
    assert plain(said) in texts(attention(cell=cell))


def test_another_sentence_closes_the_cell():
    at = attention(cell="1,1")
    at = checked(at.text_input(key="choose-text").set_value("The cat slept.").run())
    assert "cell" not in at.query_params


@pytest.mark.parametrize(
    ("label", "switch"),
    [
        ("Forbid this entry", "forbid:decoder.1.cross:2,3"),
        ("Spread this row evenly", "row:decoder.1.cross.1:2:uniform"),
        ("Put all of this row's attention on this key", "row:decoder.1.cross.1:2:3"),
    ],
)
def test_a_cell_is_changed_by_its_buttons(label, switch):
    at = attention(head="1", cell="2,3")
    at = checked(at.button(key=f"edit-{label}").click().run())
    assert at.query_params["switch"] == switch and at.query_params["cell"] == "2,3"
    assert len(removable(at)) == 1 and "without the key/value cache" in texts(at)
    at = checked(at.button(key=f"remove-{switch}").click().run())
    assert "switch" not in at.query_params
