"""The button that brings a file of sentence pairs of one's own."""

from collections.abc import Callable

import streamlit as st

from pages.shared import wording
from pages.shared.context import sentence
from pages.shared.url.url_state import Problem
from pages.training import corpora
from transformer.access.people import acting
from transformer.access.server_settings import identity
from transformer.data.unpacking import CorpusError
from transformer.data.uploads import delete_upload, list_uploads, save_uploads
from transformer.runs.limits.quota import check_quota
from transformer.runs.status import RunError

PLACE = "upload"
"""The place of a problem with a file."""


def bring_corpus(key: str, take: Callable[[str], None], tell: Callable[[Problem], None]) -> None:
    """Renders a button that opens a field for a file. `take` gets the corpus that it became, `tell` why it cannot be
    used; both are called in callbacks."""
    # After each file the popover is drawn anew, closed, beside what the file became.
    with st.popover("Bring your own", icon=":material/upload:", key=f"{_uploader(key)}-box"):
        st.markdown(
            "Sentence pairs: **TSV**, **CSV**, **JSONL** or **TMX**, also as .gz, a .zip from "
            "[manythings.org](https://www.manythings.org/anki/) or OPUS as it comes, or **two files** whose lines "
            "translate each other, such as train.en and train.fr. They stay on this machine, where "
            f"{'whoever opens the app' if identity().is_one_person else 'nobody but you'} can train on them."
        )
        st.file_uploader(
            "File of sentence pairs, or two parallel files",
            accept_multiple_files=True,
            key=_uploader(key),
            on_change=lambda: _bring(key, take, tell),
        )
        for upload in list_uploads():
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(f"{wording.plain(upload.name)}, {wording.size(upload.n_bytes)}", width="stretch")
                named = f"{key}-remove-{upload.key}"
                st.button("Remove", key=named, type="tertiary", on_click=_remove, args=(upload.key, tell))


def _remove(upload: str, tell: Callable[[Problem], None]) -> None:
    try:
        delete_upload(upload)
    except CorpusError as error:
        tell(Problem(PLACE, sentence(str(error))))


def _uploader(key: str) -> str:
    """Returns the key of the field: a new one after each file, so that the same file can be brought twice."""
    return f"{key}-{st.session_state.get(key, 0)}"


def _bring(key: str, take: Callable[[str], None], tell: Callable[[Problem], None]) -> None:
    files = st.session_state[_uploader(key)]
    if not files:
        return
    try:
        check_quota(acting().id, adding=sum(file.size for file in files))
        path = save_uploads([(file.name, file.getvalue()) for file in files])
    except CorpusError as error:  # it begins with the file's name, which stays as it is
        tell(Problem(PLACE, f"{str(error).rstrip('.')}."))
    except RunError as error:
        tell(Problem(PLACE, sentence(str(error))))
    else:
        take(corpora.of_path(path))
    st.session_state[key] = st.session_state.get(key, 0) + 1
