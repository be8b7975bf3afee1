"""Masks: the batch, each mask's switch, and what the page says of the leak."""

import json
from dataclasses import replace

import numpy as np
import pytest
from page_models import CLASSIC, PRONOUNS, checked, open_page, texts

from pages.masks.sections import _same_outputs_text
from pages.shared.wording import number, plain
from transformer.analysis.attention.mask_leakage import is_forcing_honest
from transformer.interventions import DisableMask
from transformer.lab import Lab, load
from transformer.views.masks import LeakData, MaskLeak

SHORT = "The cat slept."


pytestmark = pytest.mark.usefixtures("untrained_models")


def masks(**parameters):
    return open_page("masks", **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def figures(at):
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def test_the_batch_has_padding_and_nothing_leaks_at_first():
    at = masks()
    assert "nothing leaks" in texts(at)
    assert "exactly the mask that the recorded pass applied" in texts(at)
    assert at.text_area(key="masks-beside").value


def heatmaps(at):
    return [trace for trace in figures(at)[0]["data"] if trace["type"] == "heatmap"]


def test_the_page_opens_on_the_causal_triangle():
    at = open_page("masks")
    assert at.segmented_control(key="choose-kind").value == "decoder_self" and len(heatmaps(at)) == 3
    assert at.query_params["attention"] == "decoder_self" and "kind" not in at.query_params
    again = open_page("masks", **dict(at.query_params))
    assert figures(again)[0]["data"] == figures(at)[0]["data"]
    at = checked(at.segmented_control(key="choose-kind").set_value("cross").run())
    assert len(heatmaps(at)) == 1 and "attention" not in at.query_params
    at.query_params.clear()
    at = checked(at.switch_page("pages/attention/page.py").run())
    assert "attention" not in at.query_params
    at.query_params.clear()
    at = checked(at.switch_page("pages/masks/page.py").run())
    assert len(heatmaps(at)) == 1


def test_without_the_causal_mask_the_first_sentence_shown_loses_a_letter():
    """With the shipped model, as a first visitor meets the page."""
    at = open_page("masks", model="reverse", text="m m a a m", switch="mask:causal")
    said = texts(at)
    assert (
        said.index("Loss: **")
        < said.index("they only confuse it")
        < said.index("writes *m a a m* now instead of *m a a m m*")
    )
    kept = texts(open_page("masks", model="pronouns-en-fr", text=CLASSIC, switch="mask:causal"))
    assert "why the words can stay the same" in kept and "they only confuse it" not in kept


def test_the_page_goes_before_what_another_page_opened_on_and_after_what_was_chosen():
    at = checked(open_page("home").switch_page("pages/masks/page.py").run())
    assert at.text_input(key="choose-text").value == "m m a a m"
    at = checked(at.text_input(key="choose-text").set_value("a b c").run())
    for page, text in (("positions", "a b c"), ("masks", "a b c")):
        at.query_params.clear()
        at = checked(at.switch_page(f"pages/{page}/page.py").run())
        assert at.text_input(key="choose-text").value == text


def test_a_switch_of_another_page_is_told_and_left_for_the_pages_own_example():
    at = checked(open_page("masks").toggle(key="mask-on-causal").set_value(False).run())
    assert "still applies" not in texts(at)
    at.query_params.clear()
    at = checked(at.switch_page("pages/home/page.py").run())
    assert "What you changed on **Masks** still applies" in texts(at) and at.query_params["switch"] == "mask:causal"
    at = checked(at.button(key="start-afresh").click().run())
    assert "still applies" not in texts(at) and "switch" not in at.query_params
    assert at.text_input(key="choose-text").value != "m m a a m"
    at.query_params.clear()
    at = checked(at.switch_page("pages/masks/page.py").run())
    assert at.text_input(key="choose-text").value == "m m a a m" and at.toggle(key="mask-on-causal").value


def test_the_first_sentence_shown_is_the_pages_own_beside_a_shorter_and_a_longer_one():
    at = open_page("masks")
    assert (
        at.selectbox(key="masks-row").value == 0 and at.selectbox(key="masks-row").options[0] == "0, yours · m m a a m"
    )
    others = at.text_area(key="masks-beside").value.splitlines()
    assert len(others) == 2 and len(others[1].split()) > len("m m a a m".split()) >= len(others[0].split())


def test_a_link_without_a_kind_still_shows_cross_attention_as_it_did():
    at = masks(beside=SHORT)
    assert at.segmented_control(key="choose-kind").value == "cross" and "attention" not in at.query_params


def test_the_attention_of_other_pages_stays_as_it_was():
    at = checked(open_page("masks").switch_page("pages/attention/page.py").run())
    assert at.segmented_control(key="choose-kind").value == "cross"
    at = checked(at.segmented_control(key="choose-kind").set_value("encoder_self").run())
    at.query_params.clear()
    at = checked(at.switch_page("pages/masks/page.py").run())
    assert at.segmented_control(key="choose-kind").value == "encoder_self"


def test_outputs_that_keep_their_words_are_told_with_the_loss_that_changed():
    data = LeakData(
        names=("on padding", "on later tokens"),
        shares=np.zeros((2, 2)),
        loss=np.array([0.106, 2.28]),
        losses=np.array([[0.1, 0.112], [2.0, 2.56]]),
        outputs=(((5, 2), (6, 2)), ((5, 2), (6, 2))),
        written=(("a", "b"), ("a", "b")),
        ended=np.ones((2, 2), dtype=bool),
    )
    said = _same_outputs_text(data, {"causal"})
    assert "loss rises, but the output words stay the same" in said
    assert "0.899 before, 0.102 now" in said and "sees the tokens after it" in said
    assert "tokens after it" not in _same_outputs_text(data, {"padding"})
    still = replace(data, loss=np.array([0.106, 0.106]), losses=np.array([[0.1, 0.112], [0.1, 0.114]]))
    assert "moves by at most" in _same_outputs_text(still, {"cross"})


def test_own_sentences_are_the_batch_and_are_in_the_url():
    at = masks()
    at = checked(at.text_area(key="masks-beside").set_value(SHORT).run())
    assert at.query_params["beside"] == SHORT
    assert len(figures(at)[1]["layout"]["yaxis"]["tickvals"]) == 2
    at = checked(at.selectbox(key="masks-row").set_value(1).run())
    assert at.query_params["row"] == "1"


@pytest.mark.parametrize(("kind", "n_matrices"), [("encoder_self", 1), ("decoder_self", 3), ("cross", 1)])
def test_each_attentions_masks_combine(kind, n_matrices):
    at = masks(kind=kind, row="1", beside=SHORT)
    assert len([t for t in figures(at)[0]["data"] if t["type"] == "heatmap"]) == n_matrices
    assert "exactly the mask that the recorded pass applied" in texts(at)
    assert ("has no causal mask" in texts(at)) == (kind != "decoder_self")


@pytest.mark.parametrize("mask", ["padding", "cross", "causal"])
def test_a_mask_is_switched_off_and_on_again_and_the_leak_is_measured(mask):
    at = masks(kind="decoder_self", beside=SHORT)
    at = checked(at.toggle(key=f"mask-on-{mask}").set_value(False).run())
    assert at.query_params["switch"] == f"mask:{mask}"
    assert "exactly the mask that the recorded pass applied" in texts(at)
    lab = load(PRONOUNS)
    leak = lab.leak((CLASSIC, SHORT), [DisableMask(mask)])
    shown = next(t.value for t in at.dataframe if "as switched" in t.value)["as switched"].tolist()
    assert shown[0] == number(leak.lifted.loss)
    assert shown[4] == number(leak.lifted.shares["on later tokens, decoder self-attention"])
    assert ("output words stay the same" in texts(at)) == (not MaskLeak().data(lab, leak).changed)
    at = checked(at.toggle(key=f"mask-on-{mask}").set_value(True).run())
    assert "switch" not in at.query_params and "nothing leaks" in texts(at)


def test_an_output_that_was_cut_off_is_said(own_models, monkeypatch):
    honest = Lab.leak

    def leak(self, *arguments):
        found = honest(self, *arguments)
        cut = ((5,) * 7, *found.lifted.outputs[1:])
        ended = (False, True)
        return replace(
            found,
            intact=replace(found.intact, ended=ended),
            lifted=replace(found.lifted, outputs=cut, ended=ended),
        )

    monkeypatch.setattr(Lab, "leak", leak)
    said = texts(masks(beside="The dog slept.", switch="mask:causal"))
    longest = load(PRONOUNS).model.config.max_length
    assert (
        f"Sentence 0: no end mark was written, the output with all masks was cut off at the model's {longest}" in said
    )
    assert "It wrote no end mark and was cut off after 7 tokens." in said


def test_forcing_and_the_empty_row_are_told_with_measured_numbers():
    said = texts(masks())
    lab = load(PRONOUNS)
    forcing = is_forcing_honest(lab.model, lab.sentence(CLASSIC).ids)
    assert number(forcing.unmasked_change) in said and "move by **0**" in said
    assert "defined as zero" in said


def test_a_sentence_that_cannot_be_read_is_answered_in_a_sentence():
    at = masks(beside="word " * 90)
    assert "Sentence 2 has" in texts(at) or "entence 2" in texts(at)


@pytest.mark.parametrize(
    ("row", "shown", "said"),
    [
        ("99", 1, "There is no sentence 99: the batch has sentences 0 to 1. Sentence 1 is shown."),
        ("x", 0, "The link says row “x”, which is not the number of a sentence in the batch"),
        ("-1", 0, "The link says row “-1”"),
    ],
)
def test_a_row_that_does_not_exist_shows_one_that_does_and_says_so(row, shown, said):
    at = masks(beside=SHORT, row=row)
    assert at.selectbox(key="masks-row").value == shown and plain(said) in texts(at)
    at = checked(at.selectbox(key="masks-row").set_value(1 - shown).run())
    assert plain(said) not in texts(at)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("\n".join([SHORT] * 7), "at most 6 sentences, including the one above: the last 2 are left out."),
        (SHORT + "\n" * 990 + SHORT, "have 1,018 characters; only the first 1,000 are used"),
    ],
)
def test_more_than_a_batch_takes_is_said_at_the_field_and_stays_there(typed, said):
    at = checked(masks().text_area(key="masks-beside").set_value(typed).run())
    assert plain(said) in texts(at) and at.text_area(key="masks-beside").value == typed


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"kind": "sideways"}, "which must be one of: encoder_self, decoder_self"),
        ({"switch": "off:decoder.9.cross:0"}, "is left out"),
    ],
)
def test_nonsense_in_a_link_is_answered_in_a_sentence(parameters, said):
    assert plain(said) in texts(masks(beside=SHORT, **parameters))


def test_switches_that_this_page_leaves_out_are_named():
    said = texts(masks(beside=SHORT, switch=["off:decoder.0.cross:1", "mask:padding"]))
    assert f"Left out here: {plain('cross-attention · layer 0 · head 1 off')}." in said
    assert "Left out here" not in texts(masks(beside=SHORT, switch="mask:padding"))


def test_tokens_are_never_markup():
    assert plain("<b>") not in json.dumps(figures(masks(beside="<b>x</b> & <script>")))


def test_a_model_without_a_causal_mask_leads_to_one_that_has_it():
    at = open_page("masks", model="reverse-without-mask", text="a b c")
    assert at.toggle(key="mask-never-causal").disabled
    assert any("with the masks that it has" in table.value.columns for table in at.dataframe)
    at = checked(at.button(key="masks-with-causal").click().run())
    assert at.toggle(key="mask-on-causal").value and at.text_input(key="choose-text").value == "m m a a m"
