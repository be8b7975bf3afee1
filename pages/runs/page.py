"""The Runs page: a table of all runs, their curves over each other, the selected run; and sweeps over a setting."""

import streamlit as st

from pages.runs.clearing import say_what_will_be_cleared
from pages.runs.run_table import panel
from pages.runs.run_table_state import CHOICES, RUNS, SWEEPS, follow_url
from pages.runs.sweep_panel import sweep_panel
from pages.runs.upload import load_a_model, take_arrived
from pages.shared.context import say
from pages.shared.fields import segments
from pages.training.compare import entries

take_arrived()
found = entries()
st.markdown("# Which settings learn faster, and how far do they get? Compare your runs.")
say_what_will_be_cleared()
if not found:
    st.markdown("No runs yet. Train one: *reverse*, as recommended, is the quickest.")
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.page_link("pages/train/page.py", label="Train", icon=":material/play_arrow:")
        load_a_model()
    st.stop()

follow_url(found)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="medium"):
    segments("What to see", (RUNS, SWEEPS), CHOICES.now.tab, CHOICES.take("tab"), key="runs-tab")
    if not any(entry.run for entry in found):
        st.page_link("pages/train/page.py", label="None of these is yours yet: train one", icon=":material/play_arrow:")
    load_a_model()
say(*CHOICES.said("tab"))

if CHOICES.now.tab == SWEEPS:
    sweep_panel(found)
else:
    panel(found)
CHOICES.write_url()
