"""A pair of sentences, its split into words, and the rule that decides which pairs are held out, and in which order.

Here: `Pair`, the only definition of a word in the project, `split_of` and `shuffled`. Not here: vocabularies
(tokenizer.py) and where pairs come from (tasks.py, pronouns/, corpora.py).
"""

import re
import unicodedata
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MAX_NFC = 50_000
"""The longest text that is composed, in characters."""
Split = Literal["train", "validation", "random"]

# Punctuation and symbols, each a word of its own. Everything else that is not white space belongs to words:
# letters and digits of any script with their combining marks, which `\w` would tear off (Devanagari, Thai).
_PUNCTUATION = (
    r"!-/:-@\[-\^`{-~"  # ASCII, without the underscore
    r"\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"  # Latin-1, without its letters
    r"\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2190-\u2bff"  # dashes, quotes, currencies, arrows, mathematics
    r"\u3001-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"  # full-width
)
_LETTER = rf"[^\s{_PUNCTUATION}]"
_ELIDED = r"(?:jusqu|lorsqu|puisqu|quoiqu|qu|[cdjlmnst])['\u2019]"  # not "it's", "aujourd'hui"
_WORD = re.compile(
    rf"{_ELIDED}(?={_LETTER})"
    rf"|{_LETTER}+(?:(?:[-/'\u2019]|(?<=\d)[.,:](?=\d)){_LETTER}+)*"
    rf"|[{_PUNCTUATION}]",
    re.IGNORECASE,
)
_ELISION = re.compile(_ELIDED, re.IGNORECASE)

_NO_SPACE_BEFORE = frozenset(",.;:!?\u2026)]}%\u00bb\u201d'\u2019")
_NO_SPACE_AFTER = frozenset("([{\u00ab\u201c\u2018\u00bf\u00a1$\u00a3")


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation. Frozen and hashable.

    `alignment` holds (source unit, target unit) indices in ascending order, empty where no gold alignment is
    known. A unit is a word of `words(text)`, or a character of the text where the corpus says so
    (`Corpus.alignment_unit`).
    `referent` is (index of the pronoun, index of the noun it refers to) among the source words.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...] = ()
    referent: tuple[int, int] | None = None


def clean_text(text: str) -> str:
    """Returns a text as it is prepared everywhere, to learn from and to translate: NFC, single spaces between words,
    without byte order marks.

    Of a text over MAX_NFC characters, more than any model reads, the characters stay as they are: NFC takes quadratic
    time on a long run of combining marks.
    """
    text = " ".join(text.replace("\ufeff", "").split())
    return " ".join(unicodedata.normalize("NFC", text).split()) if len(text) <= MAX_NFC else text


def words(text: str) -> list[str]:
    """The words of a text: punctuation apart, French elisions split after the apostrophe, case kept.

    "L'animal n'a pas dormi." -> ["L'", "animal", "n'", "a", "pas", "dormi", "."]. Compounds ("arc-en-ciel",
    "don't") and numbers ("1,000", "10:30", "2021-05-03") stay whole.
    """
    return _WORD.findall(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """The (start, end) character offsets of each word of `words(text)`."""
    return [match.span() for match in _WORD.finditer(text)]


def join_words(tokens: Iterable[str]) -> str:
    """The text with these words, spaced as usual: no space before "." or after "l'", double quotes in turn.

    The inverse of `words` for text so spaced; `words(join_words(words(text))) == words(text)` for every text.
    French typography's space before "?" and ";" is not restored.
    """
    text = ""
    glued = True  # whether the next word follows without a space
    quote_open = False
    for token in tokens:
        closing = token in _NO_SPACE_BEFORE or (token == '"' and quote_open)
        text += token if glued or closing else f" {token}"
        if token == '"':
            quote_open = not quote_open
            glued = quote_open
        else:
            glued = token in _NO_SPACE_AFTER or _ELISION.fullmatch(token) is not None
    return text


def split_of(sentence: str) -> Split:
    """Returns the split of pairs with this source sentence: 90 % train, 5 % validation, 5 % random (held out).

    CRC-32 of the UTF-8 bytes, modulo 20: 0 is validation, 1 is random. So no sentence is ever in two splits, in any
    process, at any seed, and a checkpoint can tell its held-out sentences without its corpus.
    """
    match _key(sentence) % 20:
        case 0:
            return "validation"
        case 1:
            return "random"
        case _:
            return "train"


def shuffled(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Returns these pairs in the order of their sources' CRC-32, so that the first ones are a fair sample of them.

    Files of pairs are often sorted by length, and the shortest sentences are the easiest. Pairs of one source stay
    together. The order follows from the sentences alone, as their split does.
    """
    return tuple(sorted(pairs, key=lambda pair: _key(pair.source)))


def _key(sentence: str) -> int:
    return zlib.crc32(sentence.encode())
