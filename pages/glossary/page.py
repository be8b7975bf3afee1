"""Glossary: what every technical term of the other pages means."""

import streamlit as st

from pages.shared.glossary import Term, glossary


def render_term(term: Term) -> None:
    """Renders what a term means, its formula, and where the paper introduces it."""
    paper = f" *Section {term.section}.*" if term.section else ""
    name = term.name.replace("_", r"\_")
    meaning = term.meaning.replace("_", r"\_").replace("<", r"\<")
    formula = f" ${term.formula}$" if term.formula else ""
    st.markdown(f"**{name}** · {meaning}{formula}{paper}")


st.markdown("# What do the words mean?")
st.markdown(
    "Other pages underline these terms with dots where they first name them: point at one, tap it, or go there with "
    "the Tab key. Sections are those of *Attention Is All You Need* (Vaswani et al., 2017)."
)
with st.container(key="glossary", width=760):
    for subject, terms in glossary().items():
        st.markdown(f"## {subject}")
        for term in terms:
            render_term(term)
