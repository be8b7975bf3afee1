"""The visitor's own string: its field, how the models of a page read it, and the note at the field."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import streamlit as st

from pages.shared import fields
from pages.shared.context import say
from pages.shared.texts.catalogue import Texts
from pages.shared.url.page_state import UrlPart
from pages.shared.wording import plain, unseen
from pages.training.live.settings import LONGEST, STRINGS
from pages.training.plans import Plan
from transformer.data.corpus_cache import prepared
from transformer.runs.run_folder import Run
from transformer.text.pairs import clean_text
from transformer.text.token_ids import TokenizerError
from transformer.text.tokenizer import Tokenizer, load_tokenizer

TEXTS = Texts("live.input")
FIELD = "text"
"""The name of the string in a page's state, and the place of a link's problem with it."""
_EMPTIED = " "
"""Stands in the state for a field that the visitor emptied: "" is one that was never touched."""


class Reader(NamedTuple):
    """A model's tokenizer and its limit: all that its reading of a string depends on."""

    tokenizer: Tokenizer
    max_length: int
    """The most tokens that the model takes, the end mark included."""


@dataclass(frozen=True)
class Reading:
    """How the models of a page read the visitor's string."""

    text: str
    """The string that they follow; empty where one of them cannot read it."""
    note: str = ""
    """A remark on it for the visitor, in Markdown; empty where there is none to make."""
    refusals: tuple[str, ...] = ()
    """Why it cannot be read."""


def render_field(page: UrlPart[Any], *, key: str, width: int) -> None:
    """Renders the field; it takes a string of any length, so that none is cut without a word."""
    usual = STRINGS[page.now.task]
    value = "" if _is_emptied(page) else page.now.string

    def take(text: str) -> None:
        text = clean_text(text) or _EMPTIED
        page.change(text="" if text == usual else text)

    fields.line(TEXTS("label"), value, take, key=key, placeholder=usual, width=width)


def render_note(page: UrlPart[Any], reading: Reading, *, key: str) -> None:
    """Renders what is wrong or unusual about the string; a note without text keeps its room."""
    problems = (*page.said(FIELD), *reading.refusals)
    with st.container(gap=None, key=key):
        say(*problems)
        if reading.note or not problems:
            st.markdown(reading.note or "&nbsp;")


def reading_of(page: UrlPart[Any], runs: Iterable[Run], plan: Plan) -> Reading:
    """Returns how these runs read the page's string; where there are none yet, how a run of the plan will."""
    string = page.now.string
    readers = [*_readers(runs)] or [reader_of(plan)]
    if refusals := tuple(dict.fromkeys(filter(None, (refusal(string, reader) for reader in readers)))):
        return Reading("", refusals=refusals)
    if _is_emptied(page):
        return Reading(string, TEXTS("empty", text=plain(string)))
    return Reading(string, " ".join(dict.fromkeys(filter(None, (_unseen(string, reader) for reader in readers)))))


def _is_emptied(page: UrlPart[Any]) -> bool:
    return bool(page.now.text) and not clean_text(page.now.text)


def reader_of(plan: Plan) -> Reader:
    """Returns how the model of a plan will read."""
    model, _, corpus = plan.configs()
    return Reader(prepared(corpus)[1], model.max_length)


def refusal(string: str, reader: Reader) -> str:
    """Returns why a model cannot read a string, in a sentence; empty where it can."""
    if len(string) > LONGEST:
        return TEXTS("too_long", length=len(string), most=LONGEST)
    n_tokens = len(reader.tokenizer.encode(clean_text(string))) + 1
    if n_tokens <= reader.max_length:
        return ""
    return TEXTS("too_many", tokens=n_tokens, most=reader.max_length)


def _readers(runs: Iterable[Run]) -> Iterator[Reader]:
    for run in runs:
        try:
            yield Reader(load_tokenizer(run.folder), run.settings.model.max_length)
        except TokenizerError:  # the folder is damaged: the run itself says so, or is being deleted
            continue


def _unseen(string: str, reader: Reader) -> str:
    """Returns what a model reads instead of symbols that it never saw, and how letters are told apart."""
    sentence = reader.tokenizer.sentence(clean_text(string))
    said = unseen(reader.tokenizer, sentence)
    if reader.tokenizer.kind == "words" and any(_runs_together(word, reader.tokenizer) for word in sentence.unseen):
        return f"{said} {TEXTS('apart')}"
    return said


def _runs_together(word: str, tokenizer: Tokenizer) -> bool:
    return len(word) > 1 and any(not tokenizer.sentence(letter).unseen for letter in word)
