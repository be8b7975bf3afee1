"""Who the visitor is, how a teacher says so, and the links that the visitor has given out."""

import streamlit as st

from pages.shared import wording
from pages.shared.context import say
from pages.shared.visitors.sharing import link_of, withdraw
from transformer.access.known_people import become_teacher
from transformer.access.ownership import owner_of, token_of
from transformer.access.people import acting
from transformer.access.server_settings import identity, teacher_token
from transformer.runs.run_folder import list_runs

_SECRET, _REFUSAL = "class-secret", "attention-lab-class-refusal"


def render_you() -> None:
    """Renders the visitor's name here, and the way to become a teacher or to log out."""
    you, how = acting(), identity()
    st.markdown("# Your runs and files are yours: others see what you share")
    role = ", a teacher: you see the runs of all" if you.is_teacher else ""
    name, by = (you.id[:8], ", by a cookie in this browser") if how.kind == "cookie" else (you.id, "")
    st.markdown(f"You are known here as **{wording.plain(name)}**{by}{role}.")
    if how.kind == "cookie" and not you.is_teacher and teacher_token():
        with st.form("class-teacher", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("The teacher's secret", type="password", key=_SECRET, width=320, autocomplete="off")
            st.form_submit_button("I am a teacher", on_click=_claim)
    if how.kind == "oidc":
        st.button("Log out", icon=":material/logout:", on_click=st.logout)
    if refusal := st.session_state.pop(_REFUSAL, ""):
        say(refusal)


def render_shared() -> None:
    """Renders the links that the visitor has given out, each with the button that withdraws it."""
    st.markdown("## Your links")
    shared = [run for run in list_runs() if owner_of(run.folder) == acting().id and token_of(run.folder)]
    if not shared:
        st.markdown("You share nothing. *Share*, on Runs, makes a link that shows a run to whoever has it.")
    for run in shared:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown(f"**{wording.plain(run.id)}**", width=200)
            st.code(link_of(run, token_of(run.folder)), language=None, wrap_lines=True)
            st.button("Withdraw", key=f"withdraw-{run.id}", on_click=withdraw, args=(run.id,))


def _claim() -> None:
    if not become_teacher(acting().id, st.session_state[_SECRET]):
        st.session_state[_REFUSAL] = "That is not the teacher's secret: ask whoever runs the server."
