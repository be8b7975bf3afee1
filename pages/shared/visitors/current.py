"""The visitor whose page is being drawn, and the page for those who were not recognised."""

import streamlit as st
from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

from pages.shared.visitors.recognition import HEADER, unsealed
from transformer.access.known_people import LONGEST_ID, person_called
from transformer.access.people import ME, NOBODY, Person, identify_by, operator
from transformer.access.server_settings import identity, serve_at


def recognise_visitors() -> None:
    """Makes the library ask here for whom it works, on a server of this address; harmless to repeat."""
    serve_at(st.get_option("server.address"))
    identify_by(_current)


def admit_visitor() -> None:
    """Ends the script with a page that says what is missing where the visitor was not recognised."""
    recognise_visitors()
    if _current() != NOBODY:
        return
    st.markdown("# Attention Lab does not know who you are")
    if identity().kind == "oidc":
        st.markdown("Log in with the account of your school or company, so that your runs and files stay yours.")
        st.button("Log in", type="primary", icon=":material/login:", on_click=st.login)
    elif identity().kind == "header":
        st.markdown(
            "Your login did not reach this server: its proxy must send it. Open the address that you were given, or "
            "tell whoever runs the server."
        )
    else:
        st.markdown("This page was opened without the server's own start: `python -m streamlit run serve.py`.")
    st.stop()


def _current() -> Person:
    """Returns the visitor whose script this thread runs; without one, nobody, or the operator of a server for one."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return operator() if identity().is_one_person else NOBODY
    if identity().is_one_person:
        return ME
    found = _of_login() if identity().kind == "oidc" else unsealed(st.context.headers.get(HEADER, ""))
    return person_called(found) if found else NOBODY


def _of_login() -> str:
    """Returns the e-mail address of who is logged in, or the id that the provider gives where it did not check that."""
    if not st.user.is_logged_in:
        return ""
    email, verified = st.user.get("email"), st.user.get("email_verified", True)
    if isinstance(email, str) and email and verified is not False:
        return email.strip().lower()[:LONGEST_ID]
    return f"{st.user.get('iss', '')}#{st.user.get('sub', '')}"[:LONGEST_ID]
