"""Every page with a recurrent or convolutional model: what applies is shown, what does not is said, no page fails."""

import pytest
from page_models import field, open_page, texts

from pages.shared.registry import PAGES

WITH, WITHOUT, CONVOLUTIONAL = "reverse-rnn-attention", "reverse-rnn", "reverse-conv"
SENTENCE = "a b c d"
TAKEN_APART = ("heads", "masks", "positions")
FAMILY = {WITH: "rnn", WITHOUT: "rnn", CONVOLUTIONAL: "conv"}


@pytest.mark.parametrize("name", [WITH, WITHOUT, CONVOLUTIONAL])
@pytest.mark.parametrize("page", TAKEN_APART)
def test_pages_that_take_transformers_apart_say_so_and_lead_on(page, name):
    at = open_page(page, model=name, text=SENTENCE)
    assert "This page takes Transformers apart" in texts(at)
    assert ("Attention" in [link.proto.label for link in at.get("page_link")]) == (name != WITHOUT)


@pytest.mark.parametrize(
    ("page", "name"),
    [(page.folder, name) for page in PAGES for name, family in FAMILY.items() if family in page.families],
)
def test_pages_for_a_family_show_its_models(page, name):
    at = open_page(page, model=name, text=SENTENCE)
    assert "not a Transformer" in texts(at) and "takes Transformers apart" not in texts(at)


def test_walkthrough_says_that_it_has_no_steps_of_convolutions_and_leads_on():
    at = open_page("walkthrough", model=CONVOLUTIONAL, text=SENTENCE)
    assert "the steps of convolutions are not written down here" in texts(at)
    assert "Two at once" in [link.proto.label for link in at.get("page_link")]


def test_attention_of_a_model_that_has_none_is_told():
    assert "one vector of 128 numbers" in texts(open_page("attention", model=WITHOUT, text=SENTENCE))


def test_attention_offers_the_one_kind_and_head_that_there_is():
    at = open_page("attention", model=WITH, text=SENTENCE, kind="encoder_self", show="rollout", head="3")
    said = texts(at).replace("\\", "")
    assert "has no encoder self-attention" in said and "only weights and their entropy" in said
    assert "Explain a weight" not in said


def test_attention_of_a_convolutional_model_has_a_matrix_for_each_layer():
    at = open_page("attention", model=CONVOLUTIONAL, text=SENTENCE)
    assert field(at.selectbox, "Layer").options == ["0", "1", "2"]
    said = texts(at).replace("\\", "")
    assert "a convolutional model (dilated convolutions, with attention in each decoder layer)" in said


@pytest.mark.parametrize("name", [WITH, CONVOLUTIONAL])
def test_a_head_can_be_switched_off(name):
    plain = open_page("attention", model=name, text=SENTENCE)
    off = open_page("attention", model=name, text=SENTENCE, switch="off:decoder.0.cross:0")
    assert texts(plain) != texts(off)


@pytest.mark.parametrize("look", ["steps", "beam", "samples", "reference", "inside"])
@pytest.mark.parametrize(("name", "kept"), [(WITH, "256"), (WITHOUT, "256"), (CONVOLUTIONAL, "896")])
def test_decoder_steps_in_every_look(name, kept, look):
    at = open_page("steps", model=name, text=SENTENCE, look=look)
    if look == "steps":
        assert f"**State**: the {kept} numbers" in texts(at)


@pytest.mark.parametrize("other", [WITHOUT, WITH, CONVOLUTIONAL, "reverse"])
def test_two_at_once_beside_a_transformer(other):
    at = open_page("compare", model="reverse", text=SENTENCE, two="models", other=other)
    assert ("has no cross-attention" in texts(at)) == (other == WITHOUT)
