"""The technical terms of a page: underlined where its texts first name them, with what they mean.

The script that watches the page for them also keeps numbers and their signs on one line, lets the keyboard into what
scrolls sideways, and leaves one entry in the browser's history for each page.
"""

from functools import cache
from typing import Any

import streamlit as st

from pages.shared.components.frontend import declared
from pages.shared.glossary import pattern, terms
from pages.shared.texts.catalogue import spoken

_component = declared("terms", css=(), js=("whole_numbers.js", "scrolling_parts.js", "history_entries.js", "terms.js"))


def explain_terms() -> None:
    """Lets the browser find the terms in all that the page writes, now and later."""
    with st.container(key="terms"):
        _component(key="terms-found", data=_terms())


@cache
def _terms() -> dict[str, Any]:
    described = [[term.name, term.meaning, term.section, term.in_mathml] for term in terms()]
    spellings = {spelling: place for place, term in enumerate(terms()) for spelling in term.spellings}
    return {"pattern": pattern(), "terms": described, "spellings": spellings, "language": spoken().stem}
