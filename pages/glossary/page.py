"""Glossary: what every technical term of the other pages means."""

import streamlit as st

from pages.shared.glossary import Term, glossary
from pages.shared.texts.catalogue import Texts

TEXTS = Texts("glossary_page")


def render_term(term: Term) -> None:
    """Renders what a term means, its formula, and where the paper introduces it."""
    paper = f" *{TEXTS('section', section=term.section)}*" if term.section else ""
    name = term.name.replace("_", r"\_")
    meaning = term.meaning.replace("_", r"\_").replace("<", r"\<")
    formula = f" ${term.formula}$" if term.formula else ""
    st.markdown(f"**{name}** · {meaning}{formula}{paper}")


st.markdown(f"# {TEXTS('heading')}")
st.markdown(TEXTS("how"))
with st.container(key="glossary", width=760):
    for subject, terms in glossary().items():
        st.markdown(f"## {subject}")
        for term in terms:
            render_term(term)
