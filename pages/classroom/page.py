"""The Class page: who the server takes you for and what you share; for teachers also pins, quotas and the audit log."""

import streamlit as st

from pages.classroom.sharing import render_shared, render_you
from pages.classroom.teaching import render_teaching
from transformer.access.people import acting
from transformer.access.server_settings import IDENTITY, identity

if identity().is_one_person:
    st.markdown("# This server knows one person: you")
    st.markdown(f"All runs and files are yours. To let several people work here, start the server with `{IDENTITY}`.")
    st.stop()

render_you()
render_shared()
if acting().is_teacher:
    render_teaching()
