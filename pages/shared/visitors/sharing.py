"""The link that shows a run to others: the button that gives it out, and what happens when somebody follows it."""

from collections.abc import Callable
from urllib.parse import urlencode

import streamlit as st

from pages.shared.context import say, sentence
from transformer.access.ownership import may_change, token_of
from transformer.access.server_settings import identity
from transformer.runs.run_folder import Run
from transformer.runs.sharing import follow_link, share, unshare
from transformer.runs.status import RunError

PARAMETER = "share"
"""The query parameter with the token, which is taken out of the address as soon as it is read."""
_REFUSAL = "attention-lab-share-refusal"
_PAGES = {True: ("attention", "model"), False: ("runs", "run")}
"""The page that a link opens and the parameter that names the run there; True for a run with weights to look into."""


def follow_share_link() -> None:
    """Takes a token out of the address; whoever followed the link may look at its run from now on."""
    token = st.query_params.get(PARAMETER, "")
    if PARAMETER in st.query_params:
        del st.query_params[PARAMETER]
    if token:
        _try(follow_link, token)
    if refusal := st.session_state.pop(_REFUSAL, ""):
        say(refusal)


def share_button(run: Run) -> None:
    """Renders a button that opens the run's link and what it gives away; nothing where all see everything anyway."""
    if identity().is_one_person or not may_change(run.folder):
        return
    with st.popover("Share", type="tertiary", key="action-share"):
        st.caption(
            "Whoever has the link can look at this run: its settings, its curves and its model, and the names of the "
            "run and of its file. They can neither change nor download nor repeat it; the file itself, its sentences "
            "and your note stay yours."
        )
        if token := token_of(run.folder):
            st.code(link_of(run, token), language=None, wrap_lines=True)
            st.button("Withdraw the link", key="share-withdraw", on_click=withdraw, args=(run.id,))
        else:
            st.button("Make a link", key="share-make", type="primary", on_click=_try, args=(share, run.id))


def withdraw(run_id: str) -> None:
    """Makes a run's link void, or keeps the reason why not for the next page; for callbacks."""
    _try(unshare, run_id)


def _try(act: Callable[[str], object], *args: str) -> None:
    try:
        act(*args)
    except RunError as error:
        st.session_state[_REFUSAL] = sentence(str(error))


def link_of(run: Run, token: str) -> str:
    """Returns the address that shows a run, on the server by which this page came."""
    page, name = _PAGES[run.loadable]
    base = (st.context.url or "").split("?")[0].rsplit("/", 1)[0]
    return f"{base}/{page}?{urlencode({name: run.id, PARAMETER: token})}"
