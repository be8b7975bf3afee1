import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.pairs import Pair, words
from transformer.pronouns.corpus import EXAMPLES, N_PAIRS, PronounSplits, frames, is_reserved, pair, split
from transformer.pronouns.grammar import TENSES, elides, noun_phrase, verb_phrase
from transformer.pronouns.lexicon import ADJECTIVES, NOUNS
from transformer.pronouns.reading import read
from transformer.pronouns.verbs import VERBS

GOLD = (
    # The classic sentence, its twin, and both with the reason first.
    (
        "The animal did not cross the street because it was too tired.",
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    ),
    (
        "The animal did not cross the street because it was too wide.",
        "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
    ),
    (
        "Because it was too tired, the animal did not cross the street.",
        "Parce qu'il était trop fatigué, l'animal n'a pas traversé la rue.",
    ),
    (
        "Because it was too wide, the animal did not cross the street.",
        "Parce qu'elle était trop large, l'animal n'a pas traversé la rue.",
    ),
    # The same reason, other genders.
    (
        "The mouse did not cross the street because it was too tired.",
        "La souris n'a pas traversé la rue parce qu'elle était trop fatiguée.",
    ),
    (
        "The mouse did not cross the bridge because it was too wide.",
        "La souris n'a pas traversé le pont parce qu'il était trop large.",
    ),
    # Every tense, affirmed and denied.
    ("The dog crossed the field.", "Le chien a traversé le champ."),
    ("The dog had crossed the field.", "Le chien avait traversé le champ."),
    ("The dog crosses the field.", "Le chien traverse le champ."),
    ("The dog will cross the field.", "Le chien traversera le champ."),
    ("The dog did not see the wall.", "Le chien n'a pas vu le mur."),
    ("The dog had not seen the wall.", "Le chien n'avait pas vu le mur."),
    ("The dog does not see the wall.", "Le chien ne voit pas le mur."),
    ("The dog will not see the wall.", "Le chien ne verra pas le mur."),
    ("The car does not avoid the truck.", "La voiture n'évite pas le camion."),
    ("The cow will not hear the tractor.", "La vache n'entendra pas le tracteur."),
    # The tense of the reason.
    (
        "The truck will not cross the bridge because it is too narrow.",
        "Le camion ne traversera pas le pont parce qu'il est trop étroit.",
    ),
    (
        "The truck had not crossed the road because it was very slippery.",
        "Le camion n'avait pas traversé la route parce qu'elle était très glissante.",
    ),
    # Elision, silent and aspirated h, demonstratives.
    ("The hedgehog sees the hippopotamus.", "Le hérisson voit l'hippopotame."),
    ("This hippopotamus avoids the ambulance.", "Cet hippopotame évite l'ambulance."),
    ("This hedgehog reached this avenue.", "Ce hérisson a atteint cette avenue."),
    # Adjectives before and after the noun, and their forms before a vowel.
    ("The old dog frightens the black goat.", "Le vieux chien effraie la chèvre noire."),
    ("The old hippopotamus follows the beautiful bird.", "Le vieil hippopotame suit le bel oiseau."),
    ("The old giraffe admires the beautiful mountain.", "La vieille girafe admire la belle montagne."),
    ("The new bus overtook the new car.", "Le nouvel autobus a dépassé la nouvelle voiture."),
    ("The white goose left the long avenue.", "L'oie blanche a quitté la longue avenue."),
    ("The young horse will catch the gray mouse.", "Le jeune cheval attrapera la souris grise."),
    ("The old hedgehog will climb the old tree.", "Le vieux hérisson escaladera le vieil arbre."),
    # Adjectives that fit both nouns: the verb settles the referent, and negation in a chase.
    (
        "The tractor frightened the cow because it was too noisy.",
        "Le tracteur a effrayé la vache parce qu'il était trop bruyant.",
    ),
    (
        "The tractor avoided the cow because it was too noisy.",
        "Le tracteur a évité la vache parce qu'elle était trop bruyante.",
    ),
    (
        "The cat caught the mouse because it was very slow.",
        "Le chat a attrapé la souris parce qu'elle était très lente.",
    ),
    (
        "The cat did not catch the mouse because it was too slow.",
        "Le chat n'a pas attrapé la souris parce qu'il était trop lent.",
    ),
    (
        "The cat did not catch the mouse because it was too fast.",
        "Le chat n'a pas attrapé la souris parce qu'elle était trop rapide.",
    ),
    (
        "Because it was too heavy, the horse had not carried the wardrobe.",
        "Parce qu'elle était trop lourde, le cheval n'avait pas transporté l'armoire.",
    ),
    (
        "The goose fears the old robot because it is strange.",
        "L'oie craint le vieux robot parce qu'il est étrange.",
    ),
    (
        "The frog left the swamp because it was too dry.",
        "La grenouille a quitté le marais parce qu'il était trop sec.",
    ),
    (
        "The hippopotamus left the river because it was too dry.",
        "L'hippopotame a quitté la rivière parce qu'elle était trop sèche.",
    ),
)

ROOT = Path(__file__).parent.parent
SAMPLE = 5_000
indices = st.integers(0, N_PAIRS - 1)


@pytest.fixture(scope="module")
def parts() -> PronounSplits:
    return split()


@pytest.fixture(scope="module")
def sample() -> list[Pair]:
    return [pair(index) for index in range(0, N_PAIRS, N_PAIRS // SAMPLE)]


@pytest.mark.parametrize(("english", "french"), GOLD)
def test_hand_written_sentence_has_its_hand_written_translation(english, french):
    found = read(english)
    assert found is not None
    assert found.target == french


def test_number_of_pairs_is_as_stated_and_above_300_000(parts):
    frame_sizes = sum(len(frame) for frame in frames())
    split_sizes = sum(map(len, (parts.train, parts.validation, *parts.held_out.values())))
    assert N_PAIRS == frame_sizes == split_sizes > 300_000


# In an interpreter of its own, where no type checker looks at each of six million calls.
COUNT = """
import json, sys
from transformer.pronouns.corpus import split
parts = split()
taken = [parts.train[:300_000], parts.validation, parts.held_out["random"], parts.held_out["combinations"]]
french = {found.source: found.target for found in taken[-1]}
json.dump({
    "sizes": [*map(len, taken)],
    "distinct": len({found.source for part in taken for found in part}),
    "classics": [french[english] for english in json.load(sys.stdin)],
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def counted() -> dict:
    classics = json.dumps([english for english, _ in GOLD[:4]])
    return json.loads(
        subprocess.run(
            [sys.executable, "-c", COUNT], input=classics, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
    )


def test_half_a_million_pairs_from_all_splits_are_as_many_distinct_english_sentences(counted):
    assert counted["sizes"][0] == 300_000
    assert counted["distinct"] == sum(counted["sizes"]) > 500_000


def test_classic_sentences_are_held_out_combinations(counted):
    assert counted["classics"] == [french for _, french in GOLD[:4]]


def test_every_english_form_names_one_word():
    nouns = [noun.english for kind in NOUNS.values() for noun in kind]
    forms = [verb_phrase(verb, tense, denied).english for verb in VERBS for tense in TENSES for denied in (False, True)]
    assert len(set(nouns)) == len(nouns)
    assert len(set(forms)) == len(forms)


def test_a_verb_and_two_kinds_meet_each_reason_once():
    keys = Counter(
        (frame.verb.base, frame.denied, subject.kind, object.kind, frame.reason and frame.reason.english)
        for frame in frames()
        for subject, object in frame.pairs[:1]
    )
    assert set(keys.values()) == {1}


def test_no_adjective_is_a_reason_of_subject_and_object_alike():
    for verb in VERBS:
        for reasons in (verb.affirmed, verb.denied):
            assert not set(reasons.subject) & set(reasons.object), verb.base


@given(indices)
def test_every_pair_is_read_back_from_its_english_alone(index):
    # So the translation, the alignment and the referent are functions of the English sentence.
    assert read(pair(index).source) == pair(index)


def test_reason_that_the_generator_does_not_use_is_still_read_by_the_rule():
    only_one_fits = read("The horse pushed the barrel because it was very shy.")
    both_fit = read("The horse avoided the car because it was beautiful.")
    assert only_one_fits and only_one_fits.target == "Le cheval a poussé le tonneau parce qu'il était très timide."
    assert both_fit and both_fit.target == "Le cheval a évité la voiture parce qu'elle était belle."


@given(indices)
def test_alignment_covers_every_word_of_both_sides_within_range(index):
    found = pair(index)
    source, target = zip(*found.alignment, strict=True)
    assert set(source) == set(range(len(words(found.source))))
    assert set(target) == set(range(len(words(found.target))))
    assert list(found.alignment) == sorted(set(found.alignment))


def test_aligned_content_words_are_translations_of_each_other(sample):
    french_of = {noun.english: {noun.french} for kind in NOUNS.values() for noun in kind}
    for name, adjective in ADJECTIVES.items():
        french_of[name] = {adjective.masculine, adjective.feminine, adjective.before_vowel} - {""}
    for found in sample:
        source, target = words(found.source), words(found.target)
        for i, j in found.alignment:
            if source[i] in french_of:
                assert target[j] in french_of[source[i]], found


def test_pronoun_has_the_gender_of_its_referent_and_the_adjective_agrees(sample):
    nouns = {noun.english: noun for kind in NOUNS.values() for noun in kind}
    for found in sample:
        source, target = words(found.source), words(found.target)
        if found.referent is None:
            assert "because" not in found.source.lower()
            continue
        pronoun, noun = found.referent
        assert source[pronoun] == "it"
        feminine = nouns[source[noun]].feminine
        aligned = dict(found.alignment)
        assert target[aligned[pronoun]] == ("elle" if feminine else "il"), found
        end = source.index(",") if source[0] == "Because" else len(source) - 1
        adjective = ADJECTIVES[source[end - 1]]
        assert target[aligned[end - 1]] == (adjective.feminine if feminine else adjective.masculine), found


def test_reason_fits_its_referent_and_the_other_noun_only_where_the_verb_decides():
    for frame in frames():
        if frame.reason is None:
            continue
        subject, object = frame.pairs[0]
        referent, other = (subject, object) if frame.about_subject else (object, subject)
        assert referent.kind in frame.reason.fits
        reasons = frame.verb.denied if frame.denied else frame.verb.affirmed
        if other.kind in frame.reason.fits:
            assert reasons.blames in ("either", "subject" if frame.about_subject else "object")


def test_french_elides_before_every_vowel_and_nowhere_else(sample):
    for found in sample:
        target = words(found.target)
        for word, following in pairwise(target):
            if word.lower() in {"le", "la", "ne", "ce"}:
                assert not elides(following) or following == "a", found
            if word.lower() in {"l'", "n'", "qu'", "cet"}:
                assert elides(following), found
            if word in {"vieux", "beau", "nouveau"} and following.isalpha() and following != "parce":
                assert not elides(following) or following == "a", found


def test_all_four_gender_combinations_are_balanced_and_no_single_noun_gives_the_pronoun_away():
    combinations: Counter[tuple[bool, bool]] = Counter()
    about_subject: Counter[bool] = Counter()
    for frame in frames():
        if frame.reason is None:
            continue
        weight = len(frame) // len(frame.pairs)
        for subject, object in frame.pairs:
            combinations[subject.feminine, object.feminine] += weight
            if subject.feminine != object.feminine:
                about_subject[frame.about_subject] += weight
    assert all(0.23 < count / combinations.total() < 0.27 for count in combinations.values())
    assert all(0.35 < count / about_subject.total() < 0.65 for count in about_subject.values())


@pytest.mark.parametrize("kind", NOUNS)
def test_every_kind_has_as_many_masculine_as_feminine_nouns(kind):
    assert sum(noun.feminine for noun in NOUNS[kind]) * 2 == len(NOUNS[kind])


def test_each_adjective_says_il_as_often_as_elle():
    genders: dict[str, Counter[bool]] = {}
    for frame in frames():
        if frame.reason is not None:
            counts = genders.setdefault(frame.reason.english, Counter())
            for subject, object in frame.pairs:
                counts[(subject if frame.about_subject else object).feminine] += 1
    assert all(counts[True] == counts[False] for counts in genders.values())


def test_at_least_two_fifths_give_the_reason_first_and_a_third_have_adjectives_that_fit_both_nouns(sample):
    first = sum(found.source.startswith("Because") for found in sample)
    both = sum(
        len(frame)
        for frame in frames()
        if frame.reason and all(noun.kind in frame.reason.fits for noun in frame.pairs[0])
    )
    assert first / len(sample) >= 0.4
    assert both / N_PAIRS >= 0.33


def test_training_never_says_a_reserved_adjective_of_its_noun(parts):
    nouns = {noun.english: noun for kind in NOUNS.values() for noun in kind}
    for found in parts.train[:SAMPLE]:
        source = words(found.source)
        for word, following in pairwise(source):
            if word in ADJECTIVES and following in nouns:
                assert not is_reserved(nouns[following], ADJECTIVES[word]), found
        if found.referent is not None:
            end = source.index(",") if source[0] == "Because" else len(source) - 1
            assert not is_reserved(nouns[source[found.referent[1]]], ADJECTIVES[source[end - 1]]), found


def test_every_held_out_word_occurs_in_training(parts):
    def vocabulary(pairs):
        return {word for found in pairs for word in words(found.source) + words(found.target)}

    seen = vocabulary(parts.train[:SAMPLE])
    for part in (parts.validation, *parts.held_out.values()):
        assert vocabulary(part[:SAMPLE]) <= seen
    assert vocabulary(map(read, EXAMPLES)) <= seen


def test_sentences_are_short(sample):
    assert max(len(words(text)) for found in sample for text in (found.source, found.target)) <= 20


def test_parts_are_sequences_with_negative_indices_slices_and_a_clear_error(parts):
    for part in (parts.train, parts.validation, *parts.held_out.values()):
        assert part[-1] == part[len(part) - 1]
        assert part[3:6] == [part[3], part[4], part[5]]
        with pytest.raises(IndexError, match=rf"index {len(part)} is outside the {len(part):,} pairs"):
            part[len(part)]
    with pytest.raises(IndexError, match="outside"):
        pair(N_PAIRS)


def test_examples_begin_with_the_classic_sentence_and_its_twin_and_are_all_in_the_grammar():
    assert EXAMPLES[:2] == (GOLD[0][0], GOLD[1][0])
    assert all(read(english) is not None for english in EXAMPLES)


@pytest.mark.parametrize(
    "english",
    [
        "",
        "Hello.",
        "the dog saw the cat.",
        "The dog saw the dog.",
        "The dog saw the zebra.",
        "The wall saw the dog.",
        "The dog saw the cat because it is small.",
        "The cat caught the mouse because it was wide.",
        "The cat caught the mouse because it was beautiful.",
        "The dog climbed the wall because it was too.",
        "Because it was too tired the dog saw the cat.",
        "Because.",
    ],
)
def test_sentence_outside_the_grammar_reads_as_nothing(english):
    assert read(english) is None


def test_noun_phrase_without_adjective_starts_with_the_article():
    hedgehog = next(noun for noun in NOUNS["animal"] if noun.english == "hedgehog")
    assert noun_phrase(hedgehog, "plain").french == "le hérisson"
