"""A link for a class: it opens this step with its controls as they stand now, locked."""

from dataclasses import replace
from urllib.parse import urlencode

import streamlit as st

from pages.learn.choices import Choices
from pages.learn.progress import Progress
from pages.shared.texts.catalogue import Texts

TEXTS = Texts("learn")


def teachers_link(chosen: Choices) -> None:
    """Renders a button behind which the link to this step stands, with the controls locked as they are."""
    with st.popover(TEXTS("teacher.button"), type="tertiary", icon=":material/school:", key="lesson-teacher"):
        st.markdown(TEXTS("teacher.link"))
        st.code(_address(chosen), language=None, wrap_lines=True)


def _address(chosen: Choices) -> str:
    given = replace(chosen, locked=True, progress=Progress()).parameters()
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(given, doseq=True)}"
