"""Sentences of the library in the server's language.

The library speaks English. Sections of the catalogue hold its sentences as it says them: one that is found there is
said as the server's language has it, with the same numbers and tokens in its places. What is not found stays English.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from string import Formatter

from pages.shared.texts.catalogue import ORIGINAL, Texts, leaves, read_texts, spoken, wordings


@dataclass(frozen=True)
class Phrases:
    """The library's sentences in a section of the catalogue, such as "library.figures"."""

    section: str

    def __call__(self, said: str) -> str:
        """Returns in the server's language what the library says; as it is where the catalogue has no such sentence."""
        found = self.find(said)
        return said if found is None else found

    def find(self, said: str) -> str | None:
        """Returns in the server's language what the library says; None where the catalogue has no such sentence."""
        return _found(spoken(), self.section, said)


def speaks_english() -> bool:
    """Tells whether the server's language is that of the library."""
    return spoken() == ORIGINAL


@lru_cache(maxsize=16_384)
def _found(language: Path, section: str, said: str) -> str | None:
    """Returns what `Phrases.find` does in the server's language, which is named only to be remembered by."""
    for name, pattern in _patterns(section):
        if match := pattern.fullmatch(said):
            return Texts(section)(name, **match.groupdict())
    return None


@cache
def _patterns(section: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Returns each text's name and the pattern of what it says in English, those that fix the most characters first."""
    texts = read_texts(ORIGINAL)
    for part in section.split("."):
        texts = texts[part]
    said = [(".".join(path), *_pattern(each)) for path, text in leaves(texts).items() for each in wordings(text)]
    return tuple((name, pattern) for name, pattern, _ in sorted(said, key=lambda each: -each[2]))


def _pattern(text: str) -> tuple[re.Pattern[str], int]:
    """Returns the pattern of a text, whose value `n` is a number and any other may be anything, and how many characters
    of it are fixed."""
    parts = list(Formatter().parse(text))
    values = {name: rf"(?P<{name}>{'[0-9.,]+' if name == 'n' else '.+?'})" for _, name, _, _ in parts if name}
    said = "".join(re.escape(fixed) + values.get(name or "", "") for fixed, name, _, _ in parts)
    return re.compile(said), sum(len(fixed) for fixed, *_ in parts)
