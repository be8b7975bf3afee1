"""The gold French of any English sentence of the pronoun grammar, for sentences that a visitor types.

Here: an English sentence read back into nouns, verb and reason. Since its French is a function of what was read, no
English sentence has two translations. Not here: the numbered corpus (corpus.py), which draws only some decorations.
"""

from collections.abc import Sequence
from functools import cache

from transformer.data.pronouns.corpus import role_of
from transformer.data.pronouns.grammar import (
    DEGREES,
    PAST_TENSES,
    PLAIN,
    TENSES,
    THIS,
    Dress,
    noun_phrase,
    reason_clause,
    sentence,
    verb_phrase,
)
from transformer.data.pronouns.lexicon import ADJECTIVES, NOUNS, Adjective, Noun
from transformer.data.pronouns.verbs import SUBJECT, VERBS, Verb
from transformer.text.pairs import Pair, words


def read(english: str) -> Pair | None:
    """The pair with this English side, or None where the sentence is outside the grammar or has no settled referent."""
    tokens = words(english)
    if len(tokens) < 2 or tokens[-1] != "." or not tokens[0][0].isupper():
        return None
    main, reason, reason_first = _clauses([tokens[0].lower(), *tokens[1:-1]])
    parsed = _main_clause(main)
    if parsed is None:
        return None
    subject, subject_dress, verb, tense, denied, object, object_dress = parsed
    phrases = (noun_phrase(subject, subject_dress), verb_phrase(verb, tense, denied), noun_phrase(object, object_dress))
    if not reason:
        return sentence(*phrases)
    said = _reason(reason, tense)
    if said is None:
        return None
    degree, adjective = said
    role = role_of(adjective, verb.denied if denied else verb.affirmed, subject.kind, object.kind)
    if role is None:
        return None
    referent = subject if role == SUBJECT else object
    clause = reason_clause(adjective, referent.feminine, tense, degree)
    return sentence(*phrases, clause, reason_first=reason_first, about_subject=role == SUBJECT)


def nouns_of(english: str) -> tuple[Noun, ...]:
    """The nouns of the grammar that an English sentence names, in its order."""
    return tuple(_noun_forms()[word] for word in map(str.lower, words(english)) if word in _noun_forms())


def _clauses(tokens: list[str]) -> tuple[list[str], list[str], bool]:
    """The main clause, the reason ("because" included, or empty) and whether the reason came first."""
    if "because" not in tokens:
        return tokens, [], False
    start = tokens.index("because")
    if start > 0:
        return tokens[:start], tokens[start:], False
    if "," not in tokens:
        return [], tokens, True
    comma = tokens.index(",")
    return tokens[comma + 1 :], tokens[:comma], True


def _main_clause(tokens: Sequence[str]) -> tuple[Noun, Dress, Verb, str, bool, Noun, Dress] | None:
    for start in (2, 3):
        for end in (2, 3):
            action = _verb_forms().get(" ".join(tokens[start:-end]))
            subject, object = _noun(tokens[:start]), _noun(tokens[-end:])
            if action and subject and object and subject[0] != object[0]:
                verb, tense, denied = action
                if subject[0].kind in verb.subjects and object[0].kind in verb.objects:
                    return *subject, verb, tense, denied, *object
    return None


def _noun(tokens: Sequence[str]) -> tuple[Noun, Dress] | None:
    determiner, *between, last = tokens if len(tokens) >= 2 else ("", "")
    noun = _noun_forms().get(last)
    if noun is None or determiner not in ("the", "this"):
        return None
    if not between:
        return noun, THIS if determiner == "this" else PLAIN
    adjective = ADJECTIVES.get(between[0])
    if adjective is None or determiner == "this" or noun.kind not in adjective.describes:
        return None
    return noun, adjective


def _reason(tokens: Sequence[str], tense: str) -> tuple[str, Adjective] | None:
    """The degree and the adjective of "because it was too tired"."""
    if tuple(tokens[:3]) != ("because", "it", "was" if tense in PAST_TENSES else "is"):
        return None
    degree, adjective = "".join(tokens[3:-1]), ADJECTIVES.get(tokens[-1])
    if degree not in DEGREES or adjective is None or not adjective.fits:
        return None
    return degree, adjective


@cache
def _noun_forms() -> dict[str, Noun]:
    return {noun.english: noun for nouns in NOUNS.values() for noun in nouns}


@cache
def _verb_forms() -> dict[str, tuple[Verb, str, bool]]:
    return {
        verb_phrase(verb, tense, denied).english: (verb, tense, denied)
        for verb in VERBS
        for tense in TENSES
        for denied in (False, True)
    }
