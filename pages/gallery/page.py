"""Failures: what becomes of the model when a part of it is missing."""

import streamlit as st

from pages.gallery.choices import PAGE, STRING, Choices
from pages.gallery.failures import FAILURES, MANY, WHOLE, Failure, folders, right
from pages.shared.bench.shared_bench import BENCH
from pages.shared.bench.strings import backwards, marked
from pages.shared.components.tokens import aligned_tokens
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.shared.fields import line, segments
from transformer.data.tasks import SYMBOLS
from transformer.views.comparison import OutputPair, OutputsData
from transformer.views.subjects import Runs, SideBySide
from transformer.views.training.runs import ComparedRuns

_COLUMNS = 3
_CURVES = {
    "exact match": "Right strings while both trained, in percent of the validation set's first 200",
    "training loss": "The loss of each step while both trained, on a logarithmic scale",
}
"""The caption of the curves of each quantity."""


def render_string(chosen: Choices) -> str:
    """Renders the string that all models write backwards, and returns it."""
    text = chosen.text or STRING
    line("Your string: letters with spaces between them", text, PAGE.take("text"), key="gallery-text", width=420)
    lab = BENCH.lab(WHOLE)
    try:
        if lab.unknown(text):
            raise ValueError(f"the models know only the letters {', '.join(SYMBOLS)}, with spaces between them")
        BENCH.seen(WHOLE, text)
    except ValueError as error:
        say(f"{sentence(str(error))} Below, all write “{STRING}” backwards.")
        return STRING
    return text


def render_cards(text: str) -> None:
    """Renders a card for the whole model and for each that lacks a part, with what it writes for the string."""
    cards = [("The whole model", WHOLE), *((failure.title, failure.model) for failure in FAILURES)]
    for start in range(0, len(cards), _COLUMNS):
        columns = st.columns(_COLUMNS, gap="small")
        for column, (title, model) in zip(columns, cards[start : start + _COLUMNS], strict=False):
            with column, st.container(border=True, gap="small", height="stretch"):
                _render_card(title, model, text)


def _render_card(title: str, model: str, text: str) -> None:
    written = BENCH.seen(model, text).translation
    st.markdown(f"**{title}**")
    st.markdown(marked(written, backwards(text)) if written else ":red[*writes nothing*]")
    st.caption(f"{right(BENCH, model)} of {MANY} new strings right")


def render_closer(failure: Failure, text: str) -> None:
    """Renders what a part is for, what goes wrong without it, and both models' curves and outputs."""
    st.markdown(failure.part)
    st.markdown(failure.symptom(BENCH))
    left, right_column = st.columns(2, gap="large")
    with left:
        st.caption(_CURVES[failure.curve])
        exhibit(Runs(folders(failure)), ComparedRuns(quantity=failure.curve))
    with right_column:
        st.caption(f"What both write for `{text}`")
        whole, lacking = (BENCH.lab(name) for name in (failure.whole, failure.model))
        subject = SideBySide(whole, BENCH.seen(failure.whole, text), lacking, BENCH.seen(failure.model, text))
        labels = "whole", failure.title.lower()

        def draw(data: OutputsData) -> None:
            aligned_tokens(*data.written, data.aligned, labels=labels, key="gallery-outputs")

        exhibit(subject, OutputPair(labels=labels), draw=draw)
    _render_links(failure, text)


def _render_links(failure: Failure, text: str) -> None:
    arrow = ":material/arrow_forward:"
    filled = {"model": failure.whole, "text": text, "other": failure.model}
    st.page_link("pages/compare/page.py", label="Compare their heads on this string", icon=arrow, query_params=filled)
    filled = {"model": failure.model, "text": text}
    st.page_link("pages/attention/page.py", label="See what its heads attend to", icon=arrow, query_params=filled)


chosen = PAGE.follow_url()
st.markdown("# What goes wrong when a part is missing?")
st.markdown(
    "These models were to learn to write strings backwards, from the same strings. All but the first lack a part of "
    "the Transformer or of its training; in everything else each was trained like the whole model beside it."
)
own = render_string(chosen)
render_cards(own)
segments(
    "Look closer at",
    {failure.model: failure.title for failure in FAILURES},
    chosen.without,
    PAGE.take("without"),
    key="gallery-without",
)
render_closer(chosen.failure, own)
PAGE.write_url()
