"""Tokenizers learned from the chosen corpus, and the row of controls that chooses it."""

from contextlib import suppress

import streamlit as st

from pages.shared.context import say
from pages.shared.fields import box, line, stepped
from pages.tokenizers.choices import LONGEST, PAGE, SIZES, Choices
from pages.training import corpora
from pages.training.bring import PLACE, bring_corpus
from pages.training.columns import choose_columns, offered_of
from transformer.config import CorpusConfig
from transformer.data.corpora import CorpusError
from transformer.data.corpus_cache import LearnedTokenizer
from transformer.data.tasks import TASKS
from transformer.text.tokenizer import TokenizerKind


def choose_text(chosen: Choices) -> None:
    """Renders the field of the text."""
    line("Text", chosen.text, _take_text, key="tokenizers-text", max_chars=LONGEST)


def choose_corpus(chosen: Choices) -> None:
    """Renders the choice of the corpus, with a button for a file of one's own, and of its columns if it has more than
    two."""
    offered = [corpus for corpus in corpora.offered() if corpus not in TASKS]
    titles = corpora.titles(list(dict.fromkeys((*offered, chosen.corpus))))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        box("Learned from", titles, chosen.corpus, PAGE.take("corpus"), key="tokenizers-corpus", width=240)
        bring_corpus("tokenizers-upload", PAGE.take("corpus"), PAGE.tell)
    say(*PAGE.said(PLACE))
    with suppress(CorpusError):
        offered = offered_of(config_of(chosen))
        if offered is not None:
            choose_columns(offered, PAGE.take("columns"), key="tokenizers-columns", swap=False)


def choose_size(chosen: Choices) -> None:
    """Renders the choice of the vocabulary's size."""
    stepped("Vocabulary", SIZES, chosen.size, PAGE.take("size"), key="tokenizers-size", names=lambda n: f"{n:,}")


def config_of(chosen: Choices) -> CorpusConfig:
    """Returns the settings of the chosen corpus; CorpusError where its file is not here."""
    return CorpusConfig(name=corpora.config_name(chosen.corpus), columns=chosen.columns)


def learned(chosen: Choices, kind: TokenizerKind) -> LearnedTokenizer:
    """Returns the tokenizer of this kind of the chosen corpus; CorpusError or TokenizerError where there is none."""
    found = LearnedTokenizer(config_of(chosen), kind, chosen.size)
    with st.spinner("Learning tokens"):
        _ = found.tokenizer
    return found


def _take_text(text: str) -> None:
    PAGE.change(text=text.strip() or Choices().text)


def choose_text_and_source(chosen: Choices) -> None:
    """Renders the text, and the corpus and the size of the tokenizers that cut it."""
    choose_text(chosen)
    left, right = st.columns(2, gap="large", vertical_alignment="bottom")
    with left:
        choose_corpus(chosen)
    with right:
        choose_size(chosen)
