"""The Masks page's own choices, kept in the URL and across page changes."""

from dataclasses import dataclass

import streamlit as st

from pages.shared.url.page_state import PageState
from pages.shared.url.session import session
from pages.shared.url.url_state import Form, UrlState, param, whole, words
from pages.shared.url.view_state import View
from transformer.model.kinds import AttentionKind

MAX_TEXT = 1000
"""The largest number of characters of the other sentences, which travel in the URL."""
_OPENED = "masks-opened"


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The batch, and the part of it that is looked at."""

    others: str = param("", Form(str, lambda text: text[:MAX_TEXT]), name="beside")
    """The sentences that share the batch with the page's own, one a line."""
    row: int = param(0, whole(0, 999), resets=("others",), nonsense="row")
    """The sentence whose masks are shown; at first the page's own."""
    attention: AttentionKind | None = param(None, words(*AttentionKind))
    """The kind of attention that is shown until the visitor chooses one."""

    def kind(self, view: View) -> AttentionKind:
        """Returns the kind of attention to show: the visitor's choice, here or on another page, goes first."""
        return self.attention if self.attention and view.kind == View.kind else view.kind


PAGE = PageState(Choices, key="masks-page")


def is_first_visit_without_link() -> bool:
    """Returns True once: when the page opens for the first time and no link says what to show."""
    opened = st.session_state.get(_OPENED, False)
    st.session_state[_OPENED] = True
    named = any(name in st.query_params for name in (*View.names(), *Choices.names()))
    return not (opened or named) and session().view.kind == View.kind
