"""Scripts without spaces: told from the others, and their characters found with their marks."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.text.scripts import unspaced_characters, unspaced_script


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("国王爱熊。", "Chinese"),
        ("王様はくまが好きだ。", "Japanese"),
        ("ทอมรักแมว", "Thai"),
        ("ຂ້ອຍຮັກແມວ", "Lao"),
        ("ကျွန်တော်ကြောင်ကိုချစ်တယ်", "Burmese"),
        ("ខ្ញុំស្រឡាញ់ឆ្មា", "Khmer"),
        ("ང་ཞི་མི་ལ་དགའ་པོ་ཡོད།", "Tibetan"),
        ("왕은 곰을 사랑한다", None),
        ("राजा भालू से प्यार करता है", None),
        ("Vua yêu gấu", None),
        ("The king of 熊 loves bears", None),
        ("12:30 ... !", None),
        ("", None),
    ],
)
def test_the_script_is_that_of_most_letters(text, script):
    assert unspaced_script([text]) == script


def test_a_mixture_is_what_most_of_it_is():
    assert unspaced_script(["The king loves the bear."] * 9 + ["国王爱熊。"]) is None
    assert unspaced_script(["The king."] + ["国王爱熊。"] * 9) == "Chinese"


def test_characters_stand_with_their_marks_the_most_frequent_first():
    assert unspaced_characters(["爱熊爱爱 bear", "ที่ที่"])[0] == "爱"
    assert set(unspaced_characters(["爱熊爱爱 bear", "ที่ที่"])) == {"爱", "ที่", "ท", "ี", "่"}
    assert unspaced_characters(["爱熊爱"], least=1) == ("爱", "熊")
    assert unspaced_characters(["the king loves the bear, a\u0301"]) == ()


@given(st.text(st.sampled_from("a é爱熊ทีที่\u0301 か゚ខ្"), max_size=12))
def test_every_character_of_such_a_script_is_found(text):
    found = unspaced_characters([text], least=1)
    alone = {character for character in text if unspaced_script([character]) is not None}
    assert alone <= set(found)
    assert all(piece in text and not any(map(str.isspace, piece)) for piece in found)
    assert all(unicodedata.category(mark)[0] == "M" for piece in found for mark in piece[1:])
