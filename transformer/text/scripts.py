"""Scripts that are written without spaces between words, in which no pattern can tell a word."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Literal

Unspaced = Literal["Chinese", "Japanese", "Thai", "Lao", "Burmese", "Khmer", "Tibetan"]

_BLOCKS: dict[Unspaced, tuple[tuple[int, int], ...]] = {
    "Chinese": ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),
    "Japanese": ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)),  # kana; the rest is among the Chinese ones
    "Thai": ((0x0E01, 0x0E3A), (0x0E40, 0x0E5B)),
    "Lao": ((0x0E80, 0x0EFF),),
    "Burmese": ((0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    "Khmer": ((0x1780, 0x17DA), (0x17DC, 0x17FF)),
    "Tibetan": ((0x0F00, 0x0FFF),),
}
_MARKED = (*range(0x0E00, 0x1800), *range(0xA9E0, 0xAA80))
"""The blocks that have marks of their own."""
_MARKS = "".join(chr(code) for code in _MARKED if unicodedata.category(chr(code))[0] == "M")
_CLUSTER = re.compile(
    "["
    + "".join(f"{chr(low)}-{chr(high)}" for blocks in _BLOCKS.values() for low, high in blocks)
    + rf"][{_MARKS}\u0300-\u036f\u3099\u309a]*"
)
"""A character of such a script, with the marks behind it."""
_KANA = 0.05
"""The least share of kana among the characters of Japanese; Chinese has none."""
_MOST_CHARACTERS = 200_000
"""The characters that are looked at."""


def unspaced_script(texts: Iterable[str]) -> Unspaced | None:
    """Returns the script without spaces that most letters of these texts are of; None where most are of others."""
    counts, letters = Counter[Unspaced](), 0
    for text in texts:
        for character in text:
            if (script := _script(character)) is not None:
                counts[script] += 1
            letters += script is not None or character.isalpha()
        if letters >= _MOST_CHARACTERS:
            break
    if 2 * counts.total() <= letters:
        return None
    if counts["Japanese"] > _KANA * (counts["Japanese"] + counts["Chinese"]):
        return "Japanese"
    return counts.most_common(1)[0][0]


def unspaced_characters(texts: Iterable[str], least: int = 2) -> tuple[str, ...]:
    """Returns the characters of scripts without spaces that occur at least so often, the most frequent first; those
    with marks above, below or behind them (Thai, Khmer) also with these, as they are read."""
    clusters = Counter(cluster for text in texts for cluster in _CLUSTER.findall(text))
    counts = Counter[str]()
    for cluster, count in clusters.items():
        for piece in {cluster, *cluster}:
            counts[piece] += count
    return tuple(sorted((c for c in counts if counts[c] >= least), key=lambda c: (-counts[c], c)))


def _script(character: str) -> Unspaced | None:
    """Returns the script without spaces that a character belongs to."""
    code = ord(character)
    if code < 0x0E01:  # Latin, Greek, Cyrillic, Arabic, Devanagari ...: most of what is asked
        return None
    return next((name for name, blocks in _BLOCKS.items() if any(low <= code <= high for low, high in blocks)), None)
