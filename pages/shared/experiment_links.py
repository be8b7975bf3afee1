"""Links from a page to the experiments about what it shows."""

import streamlit as st

from pages.shared.registry import PAGES
from transformer.experiments.paper import find_experiment

_LAB = next(page.path for page in PAGES if page.folder == "paper_lab")


def link_experiments(title: str) -> None:
    """Ends the page of this title with a link to each experiment of the Paper lab that it asks for."""
    asked = next(page.asks for page in PAGES if page.title == title)
    if not asked:
        return
    st.space("small")
    st.caption("Is it true? Measured in the Paper lab:")
    for name in asked:
        label = find_experiment(name).question
        st.page_link(_LAB, label=label, icon=":material/science:", query_params={"experiment": name})
