"""Runs: all of them in a table, some of them laid over each other, one of them in hand."""

import streamlit as st

from pages.common.training.compare import entries
from pages.common.training.ledger import follow_url, panel, write_url

found = entries()
st.markdown("#### Which settings learn faster, and how far do they get? Compare your runs.")
if not found:
    st.markdown("No runs yet. Train one: *reverse*, as recommended, is the quickest.")
    st.page_link("pages/train.py", label="Train", icon=":material/play_arrow:")
    st.stop()

if not any(entry.run for entry in found):
    st.page_link("pages/train.py", label="None of these is yours yet: train one", icon=":material/play_arrow:")

follow_url(found)
panel(active=any(entry.active for entry in found))
write_url()
