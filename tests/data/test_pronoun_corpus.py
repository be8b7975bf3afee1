"""The corpus around "it": its size, its splits, and that nothing in it gives the pronoun away."""

import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from pronoun_sentences import GOLD, SAMPLE, sample

from transformer.data.pronouns.corpus import EXAMPLES, N_PAIRS, PronounSplits, frames, is_reserved, pair, split
from transformer.data.pronouns.lexicon import ADJECTIVES, NOUNS
from transformer.data.pronouns.reading import read
from transformer.text.pairs import words

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def parts() -> PronounSplits:
    return split()


def test_number_of_pairs_is_as_stated_and_above_300_000(parts):
    frame_sizes = sum(len(frame) for frame in frames())
    split_sizes = sum(map(len, (parts.train, parts.validation, *parts.held_out.values())))
    assert N_PAIRS == frame_sizes == split_sizes > 300_000


# In an interpreter of its own, where no type checker looks at each of six million calls.
COUNT = """
import json, sys
from transformer.data.pronouns.corpus import split
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


@pytest.mark.slow
def test_half_a_million_pairs_from_all_splits_are_as_many_distinct_english_sentences(counted):
    assert counted["sizes"][0] == 300_000
    assert counted["distinct"] == sum(counted["sizes"]) > 500_000


@pytest.mark.slow
def test_classic_sentences_are_held_out_combinations(counted):
    assert counted["classics"] == [french for _, french in GOLD[:4]]


def test_a_verb_and_two_kinds_meet_each_reason_once():
    keys = Counter(
        (frame.verb.base, frame.denied, subject.kind, object.kind, frame.reason and frame.reason.english)
        for frame in frames()
        for subject, object in frame.pairs[:1]
    )
    assert set(keys.values()) == {1}


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


def test_at_least_two_fifths_give_the_reason_first_and_a_third_have_adjectives_that_fit_both_nouns():
    first = sum(found.source.startswith("Because") for found in sample())
    both = sum(
        len(frame)
        for frame in frames()
        if frame.reason and all(noun.kind in frame.reason.fits for noun in frame.pairs[0])
    )
    assert first / len(sample()) >= 0.4
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


def test_parts_are_sequences_with_negative_indices_slices_and_a_clear_error(parts):
    for part in (parts.train, parts.validation, *parts.held_out.values()):
        assert part[-1] == part[len(part) - 1]
        assert part[3:6] == [part[3], part[4], part[5]]
        with pytest.raises(IndexError, match=rf"index {len(part)} is outside the {len(part):,} pairs"):
            part[len(part)]
    with pytest.raises(IndexError, match="outside"):
        pair(N_PAIRS)
