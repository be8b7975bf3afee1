"""The catalogue of texts that lie apart from code: a file for each language, whose texts are found by their names.

A server speaks one language, English unless $ATTENTION_LAB_LANGUAGE names another one's file. What that lacks is said
in English.

A text may hold values in braces, as `str.format` has them. One with a number in it that asks for other words is a
table: "one" and "other" as in CLDR's plural rules, and "none" for exactly 0 where that is said differently.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from transformer.access.server_settings import LANGUAGE, ServerSettingError

_FOLDER = Path(__file__).parent
ORIGINAL = _FOLDER / "en.toml"
"""The texts of which those in other languages are translations."""
PLURALS: Mapping[str, Callable[[float], str]] = {"en": lambda n: "one" if n == 1 else "other"}
"""The plural form that a number asks for in each language; a language without an entry has only "other"."""
FORMS = frozenset({"none", "zero", "one", "two", "few", "many", "other"})
"""The keys of a table that holds the plural forms of one text."""


@dataclass(frozen=True)
class Texts:
    """The texts of a section of the catalogue, such as "lessons.masks"."""

    section: str

    def __call__(self, name: str, /, **values: Any) -> str:
        """Returns a text with its values filled in; of several forms that which the value `n` asks for.

        Raises KeyError for a text that the catalogue lacks, or a value that was not given.
        """
        found = _found(self._path(name))
        if isinstance(found, Mapping):
            found = found["none"] if values["n"] == 0 and "none" in found else found[plural(values["n"])]
        return found.format_map(values) if values else found

    def several(self, name: str) -> tuple[str, ...]:
        """Returns the texts of a list."""
        return tuple(_found(self._path(name)))

    def table(self, name: str = "") -> Mapping[str, Any]:
        """Returns the texts of a table, or of the whole section, by their keys; an empty one where there is none."""
        try:
            return dict(_found(self._path(name)))
        except KeyError:
            return {}

    def _path(self, name: str) -> tuple[str, ...]:
        return (*self.section.split("."), *filter(None, name.split(".")))


def plural(n: float, language: str | None = None) -> str:
    """Returns the plural form that a number asks for, in the server's language unless another is named."""
    language = language or spoken().stem
    return PLURALS[language](n) if language in PLURALS else "other"


@cache
def spoken() -> Path:
    """Returns the file of the server's language; ServerSettingError if the setting names none."""
    named = os.environ.get(LANGUAGE, "").strip() or ORIGINAL.stem
    path = Path(named) if named.endswith(".toml") else _FOLDER / f"{named}.toml"
    if not path.is_file():
        known = ", ".join(each.stem for each in language_files())
        raise ServerSettingError(
            f"{LANGUAGE} ({named[:60]!r}) must be one of {known}, or the path of a file like en.toml"
        )
    return path


@cache
def spoken_texts() -> dict[str, Any]:
    """Returns the texts of the server's language, in English where its file has none."""
    return _merged(read_texts(ORIGINAL), read_texts(spoken()))


def _merged(first: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return dict(first) | {
        name: _merged(first[name], text)
        if isinstance(text, Mapping) and not text.keys() <= FORMS and name in first
        else text
        for name, text in own.items()
    }


@cache
def read_texts(path: Path) -> dict[str, Any]:
    """Returns the texts of a language's file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def language_files() -> tuple[Path, ...]:
    """Returns the files of all languages."""
    return tuple(sorted(_FOLDER.glob("*.toml")))


def leaves(texts: Mapping[str, Any], *path: str) -> dict[tuple[str, ...], Any]:
    """Returns every text by its path: a string, a list of strings, or a table of plural forms."""
    found: dict[tuple[str, ...], Any] = {}
    for name, text in texts.items():
        if isinstance(text, Mapping) and not text.keys() <= FORMS:
            found |= leaves(text, *path, name)
        else:
            found[(*path, name)] = text
    return found


def wordings(text: Any) -> tuple[str, ...]:
    """Returns what a text of `leaves` can say: itself, the entries of a list, or the forms of a number."""
    return (text,) if isinstance(text, str) else tuple(text.values() if isinstance(text, Mapping) else text)


def faults(texts: Mapping[str, Any], original: Mapping[str, Any], language: str) -> list[str]:
    """Returns what a translation lacks or has too much: texts, values in them, entries of lists, plural forms."""
    said, wanted = (_translated(leaves(each)) for each in (texts, original))
    found = [f"{'.'.join(path)} is missing" for path in wanted.keys() - said.keys()]
    found += [f"{'.'.join(path)} is not in the original" for path in said.keys() - wanted.keys()]
    for path in wanted.keys() & said.keys():
        own, first = said[path], wanted[path]
        if type(own) is not type(first) or (isinstance(own, list) and len(own) != len(first)):
            found.append(f"{'.'.join(path)} is not of the same kind, or not as long")
            continue
        if isinstance(own, Mapping) and (lacking := _forms(language) - own.keys()):
            found.append(f"{'.'.join(path)} lacks the form {', '.join(sorted(lacking))}")
        if _values(own) - _values(first):
            found.append(f"{'.'.join(path)} has a value that the original has not")
    return sorted(found)


def _translated(found: Mapping[tuple[str, ...], Any]) -> dict[tuple[str, ...], Any]:
    """Returns the texts that a translation must have; the spellings of a term in the glossary are its own."""
    return {path: text for path, text in found.items() if path[0] != "glossary" or path[-1] in ("name", "meaning")}


def _forms(language: str) -> set[str]:
    return {plural(n, language) for n in range(200)}


def _values(text: Any) -> set[str]:
    """Returns the names of the values in a text, in any of its forms."""
    return {name for each in wordings(text) for _, name, _, _ in Formatter().parse(each) if name}


def _found(path: tuple[str, ...]) -> Any:
    found: Any = spoken_texts()
    for name in path:
        found = found[name]
    return found
