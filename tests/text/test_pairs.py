import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.text.pairs import join_words, word_spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L'animal n'a pas dormi.", ["L'", "animal", "n'", "a", "pas", "dormi", "."]),
        ("parce qu'il était trop fatigué.", ["parce", "qu'", "il", "était", "trop", "fatigué", "."]),
        ("It's a don't, aujourd'hui", ["It's", "a", "don't", ",", "aujourd'hui"]),
        ("un arc-en-ciel", ["un", "arc-en-ciel"]),
        ("Monday, 3 May 2021", ["Monday", ",", "3", "May", "2021"]),
        ("2021-05-03 10:30 1,000", ["2021-05-03", "10:30", "1,000"]),
        ("347 + 85", ["347", "+", "85"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("", []),
    ],
)
def test_words_keep_compounds_whole_and_split_elisions(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
        "The animal did not cross the street because it was too tired.",
        'He said "no", then left (50% sure).',
        "a b c",
        "347 + 85",
        "C\u2019est l\u2019arbre d\u2019aujourd\u2019hui!",
    ],
)
def test_joining_the_words_of_a_normal_sentence_gives_it_back(text):
    assert join_words(words(text)) == text


@given(st.text() | st.text(alphabet="ldq'\u2019.,:-/\"() $3a"))
def test_joining_and_splitting_again_never_changes_the_words(text):
    assert words(join_words(words(text))) == words(text)


@given(st.text())
def test_word_spans_are_the_words_and_only_white_space_lies_between(text):
    spans = word_spans(text)
    assert [text[start:end] for start, end in spans] == words(text)
    gaps = zip([0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)], strict=True)
    assert all(not text[start:end].strip() for start, end in gaps)
