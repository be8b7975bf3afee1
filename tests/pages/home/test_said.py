"""Home's sentences about "it" in a translation: which noun it stands for, and the gender of each."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from page_models import CLASSIC

from pages.home.said import genders, pronoun
from transformer.data.pronouns.reading import read as read_pronoun_sentence
from transformer.text.pairs import words


def about_it(source: str, translation: str) -> tuple[str, str]:
    """Returns what is said of the genders and of the pronoun for this translation of a sentence."""
    gold = read_pronoun_sentence(source)
    seen: Any = SimpleNamespace(
        translation=translation,
        source_tokens=words(source),
        target_tokens=words(translation),
        probabilities=np.full(len(words(translation)), 0.5),
    )
    return genders(translation, gold), pronoun(seen, gold)


GENDERS = (
    "In French, *it* takes the gender of its noun: *animal* is masculine (*il*), *rue* (street) is feminine (*elle*)."
)


def test_a_right_pronoun_says_what_it_means():
    right = "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."
    assert about_it(CLASSIC, right) == (
        GENDERS,
        "Here *it* is translated as **il** (probability 0.500), so it means *the animal*.",
    )


def test_a_wrong_pronoun_says_what_it_stands_for_and_what_was_meant():
    assert about_it(CLASSIC, "L'animal n'a pas traversé la rue parce qu'elle était trop fatiguée.") == (
        GENDERS,
        "Here *it* is translated as **elle** (probability 0.500), so it stands for *the street*, although in the "
        "sentence it means *the animal*.",
    )


@pytest.mark.parametrize(
    "translation",
    [
        "La vache n'a pas traversé la rue parce qu'il était trop fatigué.",  # no "animal" that il could stand for
        "L'animal n'a pas traversé la route parce qu'il était trop fatigué.",
        "L'animal il.",
    ],
)
def test_nothing_is_said_of_nouns_that_the_output_does_not_name(translation):
    assert about_it(CLASSIC, translation) == ("", "Here *it* is translated as **il** (probability 0.500).")


def test_a_pronoun_does_not_tell_two_nouns_of_one_gender_apart():
    source = "The dog did not cross the bridge because it was too tired."
    said = about_it(source, "Le chien n'a pas traversé le pont parce qu'il était trop fatigué.")
    assert said == (
        "In French *chien* (dog) and *pont* (bridge) are both masculine: *il* does not tell which of them *it* means.",
        "Here *it* is translated as **il** (probability 0.500).",
    )
    _, said = about_it(source, "Le chien n'a pas traversé le pont parce qu'elle était trop fatigué.")
    assert said.endswith("**elle** (probability 0.500), which fits neither.")


def test_genders_are_told_of_sentences_with_a_settled_it_alone():
    without = "The dog crossed the street."
    assert about_it(without, "Le chien a traversé la rue.") == ("", "")
    assert genders("Le chien a traversé la rue.", None) == ""
