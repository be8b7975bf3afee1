"""Every technical term of the pages has an entry in the glossary, and every entry is used."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from page_models import open_page

from pages.shared.glossary import glossary, symbols_in, term_of, terms, terms_in
from pages.shared.texts.catalogue import ORIGINAL, leaves, read_texts, wordings

ROOT = Path(__file__).parents[3]
NOT_TERMS = {
    *(
        "CPU",
        "CSV",
        "GPU",
        "HTML",
        "JSON",
        "JSONL",
        "MB",
        "NPZ",
        "OPUS",
        "PYTHONPATH",
        "PNG",
        "RAM",
        "SVG",
        "TMX",
        "TSV",
        "URL",
        "UTC",
    ),
    "WMT",
}
"""Capitals that are files, units, collections of text and the like."""


def texts(path: Path) -> Iterator[str]:
    """The strings of a source file without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list)]
    docstrings = {id(line.value) for body in bodies for line in body if isinstance(line, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


PAGES = [path for path in ROOT.glob("pages/**/*.py") if path.name != "glossary.py" and path.parent.name != "glossary"]

OF_LIBRARY = [
    ROOT / "transformer" / "config.py",
    *(path for folder in ("analysis/trace", "views") for path in ROOT.glob(f"transformer/{folder}/**/*.py")),
]
"""The modules of the library whose texts pages show: explanations of settings, of steps and of figures."""


@cache
def shown() -> dict[Path, list[str]]:
    """Returns the strings of each file that shows some."""
    found = {path: list(texts(path)) for path in [*PAGES, *OF_LIBRARY]}
    return found | {ORIGINAL: list(_said(read_texts(ORIGINAL)))}


def _said(catalogue: Mapping[str, Any]) -> Iterator[str]:
    """Yields the texts of a catalogue, but for the glossary's own."""
    for path, text in leaves(catalogue).items():
        if path[0] != "glossary":
            yield from wordings(text)


def test_every_entry_is_used_on_a_page():
    equations = texts(ROOT / "transformer" / "model" / "scores.py")
    strings = [*chain.from_iterable(shown().values()), *equations]
    named = {term for text in strings for term in terms_in(text) if " " in text or text in term.spellings}
    written = {term for text in strings for term in symbols_in(text).values() if "\\" in text}
    assert [term.name for term in terms() if term not in named | written] == []


def test_every_symbol_and_acronym_of_the_pages_has_an_entry():
    """Words in running text, that is: a symbol such as d_k, and capitals such as KL."""
    term_like = re.compile(r"(?<![\w:./\\{-])(?:[a-zA-Z]_\w+|[A-Z]{2,}(?!\w))(?![\w=(:/])")
    for path, strings in shown().items():
        for text in strings:
            is_code = path in OF_LIBRARY and len(re.findall(r"(?<!_)\b[a-z]{3,}", text)) < 4  # a shape, or a name
            if " " in text.strip() and not (is_code or set("\\^=") & set(text)):  # an equation otherwise
                missing = [word for word in term_like.findall(text) if word not in NOT_TERMS and not term_of(word)]
                assert not missing, f"{path.relative_to(ROOT)} says {missing}: {text}"


def test_every_meaning_is_one_sentence():
    for term in terms():
        ends = re.findall(r"[.?!](?=\s+[A-Z“]|$)", term.meaning.replace("et al.", "et al"))
        assert ends == ["."], f"{term.name}: {term.meaning}"


def test_every_formula_can_be_drawn_in_the_tooltip():
    drawn = {term.name: term.in_mathml for term in terms() if term.formula}
    assert len(drawn) > 40 and all(found.startswith("<math") and "\\" not in found for found in drawn.values())


def test_each_spelling_and_each_symbol_means_one_thing():
    spellings = Counter(spelling for term in terms() for spelling in term.spellings)
    symbols = Counter(symbol for term in terms() for symbol in term.symbols)
    assert max(spellings.values()) == max(symbols.values()) == 1


@pytest.mark.parametrize(
    "text, names",
    [
        ("Queries and keys", ["query", "key"]),
        ("press the arrow keys", []),
        ("the Attention page shows self-attention", ["self-attention"]),
        ("a causal mask on each head; the headline", ["causal mask", "head"]),
        ("KL divergence in nats", ["KL divergence", "nats"]),
        ("<pad> is no token-like value", []),
    ],
)
def test_terms_are_found_as_whole_words(text: str, names: list[str]):
    assert [term.name for term in terms_in(text)] == names


@pytest.mark.parametrize(
    "equation, names",
    [
        (r"\mathrm{softmax}(S + M)\,V", {"S": "score", "M": "mask", "V": "value"}),
        (
            r"c_t = \textstyle\sum_j A_{tj}\, h_j",
            {"c_t": "context vector", "A": "attention weight", "h_j": "encoder state"},
        ),
        (r"R_l = \tfrac{1}{2}\,(W_l + I)\, R_{l-1}", {"R_l": "rollout"}),
        (r"Q = R_t\,X", {"Q": "query", "X": "state"}),
        (r"\frac{Q K^\top}{\sqrt{d_k}}", {"Q": "query", "K": "key", "d_k": "d_k"}),
    ],
)
def test_symbols_are_found_in_equations(equation: str, names: dict[str, str]):
    assert {symbol: term.name for symbol, term in symbols_in(equation).items()} == names


def test_the_page_shows_every_entry():
    at = open_page("glossary")
    page = "\n".join(element.value for element in at.markdown)
    assert not at.exception
    for subject, entries in glossary().items():
        assert f"## {subject}" in page
        assert all(term.meaning.split(" <")[0].split("_")[0] in page for term in entries)
