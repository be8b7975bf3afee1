"""The end of a page: the next question that a learner would ask, and the experiments about what the page shows."""

import streamlit as st

from pages.shared import loading
from pages.shared.guard import guard
from pages.shared.registry import BY_FOLDER, NextQuestion, RegisteredPage
from pages.shared.texts.catalogue import Texts
from pages.shared.url.session import is_lesson, session
from pages.shared.url.url_state import Parameters
from transformer.experiments.paper import find_experiment

TEXTS = Texts("further")
_ANY = "transformer"
"""The family by which a page without a model chooses its question."""


@guard("The end of this page")
def lead_further(page: RegisteredPage) -> None:
    """Ends a page with its next question, and with a link to each experiment of the Paper lab that it asks for.

    A lesson asks its own questions.
    """
    model = session().view.model if page.shows_a_sentence else None
    question = next_question(page, loading.get_lab(model).model.config.family if model else _ANY)
    if question is not None and not is_lesson(page):
        st.space("small")
        with st.container(key="next-question", width="content"):
            st.page_link(
                BY_FOLDER[question.folder].path,
                label=f"**{question.asks}** {question.answer}",
                icon=":material/arrow_forward:",
                query_params=_filled(question),
            )
    if page.asks:
        st.space("small")
        st.caption(TEXTS("measured"))
    for name in page.asks:
        label, lab = find_experiment(name).question, BY_FOLDER["paper_lab"]
        st.page_link(lab.path, label=label, icon=":material/science:", query_params={"experiment": name})


def next_question(page: RegisteredPage, family: str = _ANY) -> NextQuestion | None:
    """Returns the question at the end of a page: its own, or that of the first page further on that has something to
    show of models of this family."""
    question = page.then
    while question is not None and not _fits(question, family):
        question = BY_FOLDER[question.folder].then
    return question


def _fits(question: NextQuestion, family: str) -> bool:
    target = BY_FOLDER[question.folder]
    return not target.shows_a_sentence or "model" in question.state or family in target.families


def _filled(question: NextQuestion) -> Parameters:
    """Returns the query parameters of the answer: the visitor's view, unless it is about another model."""
    own = BY_FOLDER[question.folder].shows_a_sentence and "model" not in question.state
    return (session().view.parameters() if own else {}) | dict(question.state)
