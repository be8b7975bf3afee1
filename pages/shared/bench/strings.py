"""Strings for the lessons about reversing: what the models learned, and longer ones."""

from functools import cache

from pages.shared.bench.bench import Pairs
from pages.shared.texts.catalogue import Texts
from transformer.data.corpora import load_corpus
from transformer.data.tasks import SYMBOLS, random_bits
from transformer.inspection.token_alignment import align

TEXTS = Texts("strings")
MANY = 100
"""Strings that a share is measured on."""
_MISSING = "•"
_SPARE = 6
"""The letters that are shown of an output beyond the number of those asked for."""


def letters(length: int) -> str:
    """Returns so many letters in their order: "a b c"."""
    return " ".join(SYMBOLS[:length])


def backwards(text: str) -> str:
    """Returns the right answer of *reverse*."""
    return " ".join(reversed(text.split()))


@cache
def held_out(length: int, count: int = MANY) -> Pairs:
    """Returns validation pairs of *reverse* of this length, none of which the models trained on; fewer if there are
    fewer."""
    pairs = load_corpus("reverse").validation
    found = dict.fromkeys((pair.source, pair.target) for pair in pairs if len(pair.source.split()) == length)
    return tuple(found)[:count]


@cache
def long_strings(length: int, count: int = MANY) -> Pairs:
    """Returns random strings of any length with their reversal, as (source, target)."""
    texts = []
    for i in range(count):
        bits, letters_ = random_bits("lesson", length, i), []
        for _ in range(length):
            bits, choice = divmod(bits, len(SYMBOLS))
            letters_.append(SYMBOLS[choice])
        texts.append(" ".join(letters_))
    return tuple((text, backwards(text)) for text in texts)


def percent(right: tuple[bool, ...]) -> float:
    """Returns the share that is true, in percent."""
    return 100 * sum(right) / len(right)


def marked(written: str, answer: str) -> str:
    """Returns an output in Markdown, and says whether it is right.

    By the fewest edits to the right one: each wrong letter is bold and red, and so is a dot for each that is missing.
    Of an output that goes on and on the beginning is shown, and the number of letters that follow.
    """
    got, right = written.split(), answer.split()
    if got == right:
        return TEXTS("right", written=f"`{_together(written)}`")
    shown, most = [], len(right) + _SPARE
    for i, j in align(got[:most], right):
        letter = _MISSING if i is None else got[i]
        shown.append(f"`{letter}`" if j is not None and letter == right[j] else f":red[**`{letter}`**]")
    if len(got) > most:
        shown.append(f":red[{TEXTS('more', n=len(got) - most)}]")
    return TEXTS("wrong", written=" ".join(shown), answer=f"`{_together(answer)}`")


def _together(text: str) -> str:
    """Returns a text that stays on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")
