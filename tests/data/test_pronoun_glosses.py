"""The English beneath each French word: that of the gold alignment, and true of wrong translations too."""

import pytest
from pronoun_sentences import GOLD, sample

from transformer.data.pronouns.glosses import glosses
from transformer.data.pronouns.lexicon import NOUNS
from transformer.text.pairs import Pair, word_spans, words


def english_of_words(french: str) -> list[str]:
    """Returns the gloss over each word of a text, found by the word's place in it."""
    ends, length = [], 0
    for gloss in glosses(french):
        length += len(gloss.french)
        ends.append((length, gloss.english))
    return [next(english for end, english in ends if end >= stop) for _, stop in word_spans(french)]


def aligned_english(pair: Pair) -> list[str]:
    """Returns the English words that the corpus aligns with each French word; none for punctuation."""
    english = words(pair.source)
    linked = [[] for _ in words(pair.target)]
    for source, target in pair.alignment:
        linked[target].append(english[source].lower())
    return ["" if word in ".," else " ".join(found) for word, found in zip(words(pair.target), linked, strict=True)]


def test_the_glosses_of_right_translations_are_the_gold_alignment():
    assert all(english_of_words(pair.target) == aligned_english(pair) for pair in sample())


def test_the_french_of_all_glosses_is_the_text():
    for text in (*(french for _, french in GOLD), "", "...", " la rue ", "<unk> la rue\nx", "L'L'l'animal"):
        assert "".join(gloss.french for gloss in glosses(text)) == (text if words(text) else "")


def test_words_of_one_meaning_stand_over_it_together():
    found = [(gloss.french, gloss.english) for gloss in glosses("Le chien a traversé la rue parce qu'il était sec.")]
    assert ("a traversé ", "crossed") in found and ("parce qu'", "because") in found


@pytest.mark.parametrize(
    ("wrong", "english"),
    [
        ("L'animal la rue elle fatiguée.", ["the", "animal", "the", "street", "it", "tired", ""]),
        ("n'animal a", ["", "animal", ""]),  # outside a verb phrase these words alone have no English
        ("La girafe parle <unk>.", ["the", "giraffe", "", "", "", "", ""]),
    ],
)
def test_a_wrong_translation_is_glossed_as_it_stands(wrong, english):
    assert english_of_words(wrong) == english


def test_nouns_and_pronouns_alone_have_a_gender():
    genders = {gloss.french.strip(" ."): gloss.feminine for _, french in GOLD for gloss in glosses(french)}
    nouns = {noun.french: noun.feminine for kind in NOUNS.values() for noun in kind}
    known = {word: feminine for word, feminine in genders.items() if feminine is not None}
    assert known.items() <= (nouns | {"il": False, "elle": True}).items()
    assert {"il", "elle", "animal", "rue"} <= known.keys()
