"""Every page with a recurrent model: what applies is shown, what does not is said, and no page ends in an error."""

import pytest
from page_models import open_page, texts

from pages.shared.registry import PAGES

WITH, WITHOUT = "reverse-rnn-attention", "reverse-rnn"
SENTENCE = "a b c d"
TAKEN_APART = ("heads", "masks", "walkthrough", "positions")


@pytest.mark.parametrize("name", [WITH, WITHOUT])
@pytest.mark.parametrize("page", TAKEN_APART)
def test_pages_that_take_transformers_apart_say_so_and_lead_on(page, name):
    at = open_page(page, model=name, text=SENTENCE)
    assert "This page takes Transformers apart" in texts(at)


@pytest.mark.parametrize("name", [WITH, WITHOUT])
@pytest.mark.parametrize("page", [page.folder for page in PAGES if page.takes_any_model])
def test_pages_for_any_model_show_it(page, name):
    at = open_page(page, model=name, text=SENTENCE)
    assert "not a Transformer" in texts(at) and "takes Transformers apart" not in texts(at)


def test_attention_of_a_model_that_has_none_is_told():
    assert "one vector of 128 numbers" in texts(open_page("attention", model=WITHOUT, text=SENTENCE))


def test_attention_offers_the_one_kind_and_head_that_there_is():
    at = open_page("attention", model=WITH, text=SENTENCE, kind="encoder_self", show="rollout", head="3")
    said = texts(at).replace("\\", "")
    assert "has no Encoder self-attention" in said and "only weights and their entropy" in said
    assert "Explain a weight" not in said


def test_a_head_can_be_switched_off():
    plain = open_page("attention", model=WITH, text=SENTENCE)
    off = open_page("attention", model=WITH, text=SENTENCE, switch="off:decoder.0.cross:0")
    assert texts(plain) != texts(off)


@pytest.mark.parametrize("look", ["steps", "beam", "samples", "reference", "inside"])
@pytest.mark.parametrize("name", [WITH, WITHOUT])
def test_decoder_steps_in_every_look(name, look):
    at = open_page("steps", model=name, text=SENTENCE, look=look)
    if look == "steps":
        assert "**State**: the 256 numbers" in texts(at)


@pytest.mark.parametrize("other", [WITHOUT, WITH, "reverse"])
def test_two_at_once_beside_a_transformer(other):
    at = open_page("compare", model="reverse", text=SENTENCE, two="models", other=other)
    assert ("has no Cross-attention" in texts(at)) == (other == WITHOUT)
