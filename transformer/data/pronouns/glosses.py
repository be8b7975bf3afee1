"""Word-for-word English beneath a French text of the pronoun corpus, for readers without French.

The English comes from the alignment of the grammar's own phrases (grammar.py), so a gloss says what the French word
means wherever it stands: in a model's wrong translation as in a right one. Not here: the gold translation (reading.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from transformer.data.pronouns.grammar import (
    DEGREES,
    PLAIN,
    TENSES,
    THIS,
    Phrase,
    noun_phrase,
    reason_clause,
    verb_phrase,
)
from transformer.data.pronouns.lexicon import ADJECTIVES, NOUNS
from transformer.data.pronouns.verbs import VERBS
from transformer.text.pairs import word_spans, words


@dataclass(frozen=True, slots=True)
class Gloss:
    """French words that share one meaning ("a traversé" = "crossed"), as they stand in the text."""

    french: str
    """Holds the white space and any text up to the next gloss: all of them joined are the text."""
    english: str
    """Empty for punctuation and for words that the grammar does not explain where they stand."""
    feminine: bool | None = None
    """The gender of a noun, and of "il" and "elle"; None for other words."""


_Meanings = tuple[str, ...]
"""The English of each French word of a phrase."""


def glosses(french: str) -> tuple[Gloss, ...]:
    """Returns the text cut into words with the English of each."""
    tokens = [word.lower() for word in words(french)]
    starts = [0, *(start for start, _ in word_spans(french)[1:]), len(french)]
    found = []
    first = 0
    while first < len(tokens):
        meanings = _meanings(tokens, first)
        for start, end in _runs(meanings):
            feminine = _genders().get(tokens[first + start]) if end - start == 1 else None
            found.append(Gloss(french[starts[first + start] : starts[first + end]], meanings[start], feminine))
        first += len(meanings)
    return tuple(found)


def _meanings(tokens: Sequence[str], first: int) -> _Meanings:
    """Returns the English of the longest phrase that begins at a word; of that word alone, "" if it is unknown."""
    for length in range(min(_longest(), len(tokens) - first), 0, -1):
        if (meanings := _phrases().get(tuple(tokens[first : first + length]))) is not None:
            return meanings
    return ("",)


def _runs(meanings: _Meanings) -> Iterator[tuple[int, int]]:
    """Yields (start, end) of the neighbours with the same English."""
    start = 0
    for i in range(1, len(meanings) + 1):
        if i == len(meanings) or meanings[i] != meanings[start]:
            yield start, i
            start = i


@cache
def _phrases() -> dict[tuple[str, ...], _Meanings]:
    """Returns the meanings of each verb phrase, of "parce qu'" and of every other word alone."""
    known: dict[tuple[str, ...], _Meanings] = {}
    for phrase in _nouns_and_reasons():
        for word, meaning in zip(words(phrase.french), _aligned(phrase), strict=True):
            known[(word,)] = (meaning,)
    parce, qu, *_ = words(_reason(feminine=False).french)
    known[(parce, qu)] = known[(parce,)] * 2
    for verb in VERBS:
        for tense in TENSES:
            for denied in (False, True):
                phrase = verb_phrase(verb, tense, denied)
                known[tuple(words(phrase.french))] = _aligned(phrase)
    return known


def _nouns_and_reasons() -> Iterator[Phrase]:
    """Yields the phrases in which each French word means the same as everywhere else."""
    for nouns in NOUNS.values():
        for noun in nouns:
            dresses = (adjective for adjective in ADJECTIVES.values() if noun.kind in adjective.describes)
            for dress in (PLAIN, THIS, *dresses):
                yield noun_phrase(noun, dress)
    for adjective in ADJECTIVES.values():
        for feminine in (False, True):
            for tense in TENSES:
                for degree in DEGREES:
                    yield reason_clause(adjective, feminine, tense, degree)


def _aligned(phrase: Phrase) -> _Meanings:
    """Returns the English words to which each French word is linked."""
    english = words(phrase.english)
    linked: list[list[str]] = [[] for _ in range(phrase.n_french)]
    for source, target in phrase.links:
        linked[target].append(english[source])
    return tuple(" ".join(meaning) for meaning in linked)


@cache
def _longest() -> int:
    return max(map(len, _phrases()))


@cache
def _genders() -> dict[str, bool]:
    """Returns True for each feminine noun and pronoun, False for each masculine one."""
    pronouns = {words(_reason(feminine=feminine).french)[2]: feminine for feminine in (False, True)}
    return pronouns | {noun.french: noun.feminine for nouns in NOUNS.values() for noun in nouns}


def _reason(*, feminine: bool) -> Phrase:
    """Returns a clause with "parce qu'" and the pronoun of a gender."""
    return reason_clause(next(iter(ADJECTIVES.values())), feminine, TENSES[0], "")
