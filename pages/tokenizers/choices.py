"""The choices of the Tokenizer lab, kept in the URL: the section, the text, what tokenizers learn from, their size."""

from dataclasses import dataclass
from typing import Literal, get_args

from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import TEXTS, Form, Refused, UrlState, param, text, whole, words
from pages.training import corpora
from pages.training.plan_text import expected, parsed
from transformer.analysis.tokens.embeddings import Side
from transformer.data.corpora import PRONOUNS

Section = Literal["split", "merges", "unknown", "sizes", "model", "map"]
SECTIONS: dict[Section, str] = {
    "split": "Side by side",
    "merges": "BPE's merges",
    "unknown": "Unknown characters",
    "sizes": "Vocabulary size",
    "model": "A model's tokens",
    "map": "Embedding map",
}
SIZES = (100, 200, 300, 400, 500, 700, 1000, 1400, 2000, 3000, 4000)
"""Vocabulary sizes to choose from, special tokens counted."""
TEXT = "The untiring hedgehogs did not cross the widest street 🦔."
LONGEST = 400
"""Characters of the text."""
_NAME = text(80)
"""The form of a model's name, and of a vocabulary entry."""


def _read_corpus(name: str) -> str:
    if not corpora.is_known(name):
        raise Refused(TEXTS("expected.corpus"))
    return name


def _read_columns(text: str) -> str:
    try:
        return parsed("columns", text)
    except ValueError as error:
        raise Refused(TEXTS("expected.columns", columns=expected("columns"))) from error


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices."""

    section: Section = param("split", words(*get_args(Section)))
    text: str = param(TEXT, text(LONGEST))
    corpus: str = param(PRONOUNS, Form(_read_corpus))
    """What the tokenizers learn from, as `corpora.config_name` takes it."""
    columns: str | None = param(None, Form(_read_columns), resets=("corpus",))
    """The columns of a file that hold the sentences, "2,4"; None: found by their names and their content."""
    size: int = param(500, words(*SIZES))
    """The vocabulary that the tokenizers are given."""
    model: str = param("", _NAME)
    """The model whose tokens are shown; empty for the first."""
    step: int | None = param(None, whole(0, 9_999), resets=("text", "corpus", "columns", "size", "model"))
    """The number of BPE's merges that are made; None for all."""
    side: Side = param("source", words(*get_args(Side)))
    """The embedding matrix, where a model has one for each side."""
    token: str = param("", _NAME, resets=("model",))
    """The vocabulary entry whose neighbours are shown; empty for one that is a word."""


PAGE = UrlPart(Choices, key="tokenizers-page")
