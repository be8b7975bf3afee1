"""English and French phrases of the pronoun corpus, side by side with their word alignment.

Here: articles and demonstratives, agreement, elision, adjective order, tense and negation. Each function returns a
`Phrase`. Not here: the words themselves (lexicon.py) and which phrases meet (corpus.py).

Tenses: the simple past is the passé composé, the past perfect the plus-que-parfait, the present the présent and "will"
the futur simple. A reason is in the imparfait ("was") after the two past tenses, and in the présent ("is") after the
present and the future.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from transformer.data.pronouns.lexicon import ASPIRATED, Adjective, Noun
from transformer.data.pronouns.verbs import Verb
from transformer.text.pairs import Pair, words

TENSES = ("past", "present", "future", "past perfect")
PAST_TENSES = ("past", "past perfect")
DEGREES = {"too": "trop", "very": "très", "": ""}

PLAIN, THIS = "plain", "this"
Dress = str | Adjective
"""The determiner of a noun: PLAIN ("the dog"), THIS ("this dog") or an adjective ("the old dog")."""

_VOWELS = frozenset("aeiouyàâéèêëîïôûœh")


@dataclass(frozen=True, slots=True)
class Phrase:
    """The same words in both languages, their numbers of words, and the (English, French) links between them."""

    english: str
    french: str
    n_english: int
    n_french: int
    links: tuple[tuple[int, int], ...]


_COMMA = Phrase(",", ",", 1, 1, ((0, 0),))
_STOP = Phrase(".", ".", 1, 1, ((0, 0),))


def _phrase(english: str, french: str, links: Iterable[tuple[int, int]]) -> Phrase:
    return Phrase(english, french, len(words(english)), len(words(french)), tuple(sorted(links)))


def elides(word: str) -> bool:
    """Tells whether the article before this French word loses its vowel ("l'hippopotame", but "le hérisson")."""
    return word[0] in _VOWELS and word not in ASPIRATED


def agreed(adjective: Adjective, feminine: bool) -> str:
    """The French adjective in this gender, as it stands after a verb."""
    return adjective.feminine if feminine else adjective.masculine


@cache
def noun_phrase(noun: Noun, dress: Dress) -> Phrase:
    """ "the old dog" and "le vieux chien": the noun is the last English word."""
    if isinstance(dress, str):
        french = _determined(noun.french, noun.feminine, demonstrative=dress == THIS)
        return _phrase(f"{'this' if dress == THIS else 'the'} {noun.english}", french, [(0, 0), (1, 1)])
    adjective = agreed(dress, noun.feminine)
    if not noun.feminine and dress.precedes and dress.before_vowel and elides(noun.french):
        adjective = dress.before_vowel
    french = f"{adjective} {noun.french}" if dress.precedes else f"{noun.french} {adjective}"
    links = [(0, 0), (1, 1), (2, 2)] if dress.precedes else [(0, 0), (1, 2), (2, 1)]
    french = _determined(french, noun.feminine, demonstrative=False)
    return _phrase(f"the {dress.english} {noun.english}", french, links)


def _determined(phrase: str, feminine: bool, *, demonstrative: bool) -> str:
    vowel = elides(phrase.split()[0])
    if demonstrative:
        return f"{'cette' if feminine else 'cet' if vowel else 'ce'} {phrase}"
    return f"l'{phrase}" if vowel else f"{'la' if feminine else 'le'} {phrase}"


@cache
def verb_phrase(verb: Verb, tense: str, denied: bool) -> Phrase:
    """ "did not cross" and "n'a pas traversé"."""
    if denied:
        return _denied(verb, tense)
    match tense:
        case "past":
            return _phrase(verb.past, f"a {verb.french_participle}", [(0, 0), (0, 1)])
        case "past perfect":
            return _phrase(f"had {verb.participle}", f"avait {verb.french_participle}", [(0, 0), (1, 1)])
        case "present":
            return _phrase(verb.present, verb.french_present, [(0, 0)])
        case "future":
            return _phrase(f"will {verb.base}", verb.french_future, [(0, 0), (1, 0)])
    raise ValueError(f"unknown tense {tense!r}: choose one of {', '.join(TENSES)}")


def _denied(verb: Verb, tense: str) -> Phrase:
    split = [(0, 1), (1, 0), (1, 2), (2, 3)]  # auxiliary, ne ... pas, verb
    whole = [(0, 1), (1, 0), (1, 2), (2, 1)]
    match tense:
        case "past":
            return _phrase(f"did not {verb.base}", f"n'a pas {verb.french_participle}", split)
        case "past perfect":
            return _phrase(f"had not {verb.participle}", f"n'avait pas {verb.french_participle}", split)
        case "present":
            return _phrase(f"does not {verb.base}", _between_ne_and_pas(verb.french_present), whole)
        case "future":
            return _phrase(f"will not {verb.base}", _between_ne_and_pas(verb.french_future), whole)
    raise ValueError(f"unknown tense {tense!r}: choose one of {', '.join(TENSES)}")


def _between_ne_and_pas(form: str) -> str:
    return f"n'{form} pas" if elides(form) else f"ne {form} pas"


@cache
def reason_clause(adjective: Adjective, feminine: bool, tense: str, degree: str) -> Phrase:
    """ "because it was too wide" and "parce qu'elle était trop large": the pronoun is the second English word."""
    is_past = tense in PAST_TENSES
    english = ["because", "it", "was" if is_past else "is", degree, adjective.english]
    french = ["elle" if feminine else "il", "était" if is_past else "est", DEGREES[degree], agreed(adjective, feminine)]
    links = [(0, 0), (0, 1), (1, 2), (2, 3), (3, 4), *([(4, 5)] if degree else [])]
    return _phrase(" ".join(filter(None, english)), "parce qu'" + " ".join(filter(None, french)), links)


def sentence(
    subject: Phrase,
    verb: Phrase,
    object: Phrase,
    reason: Phrase | None = None,
    *,
    reason_first: bool = False,
    about_subject: bool = False,
) -> Pair:
    """The pair with its alignment and, given a reason, its referent. A reason placed first ends in a comma."""
    if reason is None:
        return _pair((subject, verb, object))
    main = subject.n_english + verb.n_english + object.n_english
    noun = subject.n_english - 1 if about_subject else main - 1
    if reason_first:
        return _pair((reason, _COMMA, subject, verb, object), (1, reason.n_english + 1 + noun))
    return _pair((subject, verb, object, reason), (main + 1, noun))


def _pair(phrases: tuple[Phrase, ...], referent: tuple[int, int] | None = None) -> Pair:
    links: list[tuple[int, int]] = []
    n_english = n_french = 0
    for phrase in (*phrases, _STOP):
        links += [(source + n_english, target + n_french) for source, target in phrase.links]
        n_english += phrase.n_english
        n_french += phrase.n_french
    english = _written([phrase.english for phrase in phrases])
    return Pair(english, _written([phrase.french for phrase in phrases]), tuple(links), referent)


def _written(phrases: list[str]) -> str:
    text = " ".join(phrases).replace(" ,", ",")
    return f"{text[0].upper()}{text[1:]}."
