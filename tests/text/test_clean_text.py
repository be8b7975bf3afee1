"""Text is prepared in one way for all ways in."""

import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.batches import encode_sources
from transformer.data.cleaning import clean_pairs
from transformer.lab import load
from transformer.text.pairs import MAX_NFC, clean_text

SENTENCE = "The animal did not cross the street."
SPACES = st.sampled_from([" ", "  ", "\u00a0", "\t", "\u2009", " \u3000", "\u2028", "\r\n", "\ufeff "])


@given(st.text())
def test_cleaning_twice_is_cleaning_once(text):
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned and unicodedata.is_normalized("NFC", cleaned)
    assert cleaned == " ".join(cleaned.split()) and "\ufeff" not in cleaned


@given(st.text(), st.sampled_from(["NFC", "NFD"]), st.data())
def test_spacing_and_composition_make_no_difference(text, form, data):
    parts = unicodedata.normalize(form, text).split()
    odd = "".join(f"{part}{data.draw(SPACES)}" for part in parts)
    assert clean_text(odd) == clean_text(text)


@pytest.fixture(scope="module")
def lab():
    return load("pronouns-en-fr")


@given(st.data())
def test_every_way_in_reads_the_same_tokens(lab, data):
    odd = "".join(f"{data.draw(SPACES)}{word}" for word in SENTENCE.split())
    wanted = lab.sentence(SENTENCE)
    assert lab.sentence(odd) == wanted and not lab.unknown(odd)
    ids, mask = encode_sources([odd, SENTENCE], lab.tokenizer, max_length=lab.model.config.max_length)
    assert torch.equal(ids[0], ids[1]) and mask.all() and ids[0].tolist() == list(wanted.ids)
    assert clean_pairs([(odd, odd)])[0][0].source == SENTENCE


def test_translation_and_inspection_agree_with_the_plain_sentence(lab):
    odd = "\ufeff " + SENTENCE.replace(" ", "\u00a0 ") + "\t"
    assert lab.translate([odd]) == lab.translate([SENTENCE])
    assert lab.inspect(odd).text == SENTENCE and lab.inspect(odd).translation == lab.inspect(SENTENCE).translation


def test_long_runs_of_combining_marks_take_no_quadratic_time():
    assert clean_text("a" + "\u0301" * 4 * MAX_NFC) == "a" + "\u0301" * 4 * MAX_NFC
