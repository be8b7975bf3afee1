"""Loading a model that was downloaded here or elsewhere."""

import streamlit as st

from pages.runs.run_table_state import CHOICES, show_run, table_state
from pages.shared.context import say, sentence
from transformer.runs.archive import load_archive
from transformer.runs.status import RunError

MOST_MB = 300
"""The size limit of an upload, which is held in memory while it is checked; the paper's base model has 260.

Larger ones come in by `python -m transformer runs import`.
"""


def load_a_model() -> None:
    """Renders a button that opens a field for an archive; the loaded model is then selected."""
    now = table_state()
    with st.popover("Load a model", icon=":material/upload:", key="load-a-model"):
        file = st.file_uploader(
            "An archive downloaded from Attention Lab",
            type="zip",
            key=f"archive-{now.uploads}",
            max_upload_size=MOST_MB,
        )
        st.caption("A zip file made by *Download*. It is checked before anything in it is kept.")
        if file is None:
            return
        try:
            with st.spinner("Checking the archive"):
                name = load_archive(file)
        except RunError as error:
            say(sentence(str(error)))
            return
    now.uploads, now.arrived = now.uploads + 1, name
    CHOICES.change(shown=(*(CHOICES.now.shown or ()), name))
    st.rerun()


def take_arrived() -> None:
    """Goes to the model that was loaded a moment ago, before the page draws its controls."""
    now = table_state()
    if now.arrived:
        show_run(now.arrived)
        now.arrived = ""
