"""The technical terms of the pages, defined in the catalogue: pages underline them, and the Glossary lists them.

A term is found by its spellings alone, so that a page's text needs no marks.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from latex2mathml.converter import convert

from pages.shared.texts.catalogue import Texts

SUBJECTS = Texts("subjects")
TERMS = Texts("glossary")
ORDINARY = ("arrow key", "tab key", "attention page", "attention lab", "heads page", "masks page")
"""Words with a spelling in them that do not mean the term."""

_SYMBOL = re.compile(r"\\alpha|[A-Za-z](?:[_^](?:\{[^}]*\}|\w))?")
_NO_SYMBOL = re.compile(r"\\(?:mathrm|text|begin|end)\{[^}]*\}|\\(?!alpha)[a-z]+", re.IGNORECASE)


@dataclass(frozen=True)
class Term:
    """A technical term and what it means."""

    name: str
    meaning: str
    """One sentence of plain text."""
    section: str = ""
    """The section of "Attention Is All You Need" that introduces it; empty for what came before or after."""
    formula: str = ""
    """LaTeX, if a formula says it shorter."""
    also: tuple[str, ...] = ()
    """Other spellings. One in small letters may begin a sentence, and each may end in a plural s."""
    symbols: tuple[str, ...] = ()
    """Its symbols in the equations of the pages, as LaTeX writes them."""
    only: tuple[str, ...] = ()
    """The spellings of one whose name alone has other meanings too; they count in place of name and `also`."""

    @property
    def in_mathml(self) -> str:
        """Returns its formula as browsers draw it without a library; empty where it has none."""
        return convert(self.formula) if self.formula else ""

    @property
    def spellings(self) -> tuple[str, ...]:
        """Returns the words by which a text names it."""
        return self.only or (self.name, *self.also)


@cache
def glossary() -> dict[str, tuple[Term, ...]]:
    """Returns the terms by subject, in the order in which they build on one another."""
    return {title: tuple(map(_term, TERMS.table(subject).values())) for subject, title in SUBJECTS.table().items()}


def _term(entry: dict[str, Any]) -> Term:
    return Term(**{name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()})


@cache
def terms() -> tuple[Term, ...]:
    """Returns all terms."""
    return tuple(term for found in glossary().values() for term in found)


@cache
def pattern() -> str:
    """Returns a regular expression, for Python and the browser alike, that finds each spelling as a whole word."""
    spellings = sorted((*ORDINARY, *_by_spelling()), key=len, reverse=True)
    return rf"(?<![\w<-])(?:{'|'.join(map(_either_case, spellings))})s?(?![\w>]|-\w)"


def _either_case(words: str) -> str:
    """Returns a pattern for small letters that may be capitals at the start of a word; capitals stay."""
    return re.sub(r"(?<!\S)[a-z]", lambda first: f"[{first[0]}{first[0].upper()}]", words) if words.islower() else words


@cache
def _by_spelling() -> dict[str, Term]:
    return {spelling: term for term in terms() for spelling in term.spellings}


def term_of(found: str) -> Term | None:
    """Returns the term that `pattern` found by these words; None if they are ordinary ones."""
    spellings = _by_spelling()
    forms = (found, found.lower(), found[:-1], found[:-1].lower())
    return next((spellings[form] for form in forms if form in spellings), None)


def terms_in(text: str) -> tuple[Term, ...]:
    """Returns the terms that a text names, each once, in the order of the text."""
    found = map(term_of, re.findall(pattern(), text))
    return tuple(dict.fromkeys(term for term in found if term is not None))


def symbols_in(equation: str) -> dict[str, Term]:
    """Returns the symbols of an equation in LaTeX that stand for terms, in its order.

    A symbol with an index counts as itself if it has a term, else a capital counts without its index.
    """
    known = {symbol: term for term in terms() for symbol in term.symbols}
    found: dict[str, Term] = {}
    for symbol in _SYMBOL.findall(_NO_SYMBOL.sub(" ", equation)):
        whole = symbol.replace("{", "").replace("}", "")
        shown = whole if whole in known else symbol[0] if symbol[0].isupper() else ""
        if shown in known:
            found.setdefault(shown, known[shown])
    return found
