"""The button that brings a file of sentence pairs of one's own."""

from collections.abc import Callable

import streamlit as st

from pages.shared.url.url_state import Problem
from pages.training import corpora
from transformer.access.server_settings import identity
from transformer.data.cleaning import kinds_of_files
from transformer.data.corpora import CorpusError
from transformer.data.uploads import save_upload

PLACE = "upload"
"""The place of a problem with a file."""


def bring_corpus(key: str, take: Callable[[str], None], tell: Callable[[Problem], None]) -> None:
    """Renders a button that opens a field for a file. `take` gets the corpus that it became, `tell` why it cannot be
    used; both are called in callbacks."""
    # After each file the popover is drawn anew, closed, beside what the file became.
    with st.popover("Bring your own", icon=":material/upload:", key=f"{_uploader(key)}-box"):
        st.markdown(
            "Sentence pairs, one per line: **TSV**, **CSV** or **JSONL**, also as .gz, or a .zip from "
            "[manythings.org](https://www.manythings.org/anki/) as it comes. It stays on this machine, where "
            f"{'whoever opens the app' if identity().is_one_person else 'nobody but you'} can train on it."
        )
        st.file_uploader(
            "File of sentence pairs",
            type=[kind.removeprefix(".") for kind in (*kinds_of_files(), ".gz")],
            key=_uploader(key),
            on_change=lambda: _bring(key, take, tell),
        )


def _uploader(key: str) -> str:
    """Returns the key of the field: a new one after each file, so that the same file can be brought twice."""
    return f"{key}-{st.session_state.get(key, 0)}"


def _bring(key: str, take: Callable[[str], None], tell: Callable[[Problem], None]) -> None:
    file = st.session_state[_uploader(key)]
    if file is None:
        return
    try:
        path = save_upload(file.name, file.getvalue())
    except CorpusError as error:
        tell(Problem(PLACE, f"{str(error).rstrip('.')}."))
    else:
        take(corpora.of_path(path))
    st.session_state[key] = st.session_state.get(key, 0) + 1
