"""Files made on request, kept for their download until another is made or another page opens."""

from dataclasses import dataclass

import streamlit as st

from pages.shared import wording

_KEY = "file-made"


@dataclass(frozen=True)
class Made:
    """A file to download."""

    use: str
    """The part of the page that offers it."""
    name: str
    mime: str
    content: bytes


def show_made(file: Made) -> None:
    """Keeps a file for its download."""
    st.session_state[_KEY] = file


def forget_made() -> None:
    """Frees the memory of the file."""
    st.session_state.pop(_KEY, None)


def offer(use: str, label: str) -> None:
    """Renders the download of the file that was made for this use, if there is one."""
    file: Made | None = st.session_state.get(_KEY)
    if file is None or file.use != use:
        return
    st.download_button(
        f"{label} ({wording.size(len(file.content))})",
        file.content,
        file_name=file.name,
        mime=file.mime,
        key=f"{use}-download",
        type="primary",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption(wording.plain(file.name))
