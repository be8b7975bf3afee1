"""The app's frame: its pages, its look, and the runs in progress in the sidebar. No logic."""

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from pages.shared.registry import PAGES
from pages.shared.url.packed_link import follow_packed_link
from pages.training.run_status import runs_in_progress

HERE = Path(__file__).parent

st.set_page_config(page_title="Attention Lab", page_icon=str(HERE / "static" / "mark.svg"), layout="wide")
st.html(HERE / "static" / "frame.css")
st.logo(HERE / "static" / "logo.svg", size="large", icon_image=HERE / "static" / "mark.svg")

navigation: dict[str, list[StreamlitPage]] = {}
for entry in PAGES:
    found = st.Page(entry.path, title=entry.title, url_path=entry.url, default=entry is PAGES[0])
    navigation.setdefault(entry.section, []).append(found)
page = st.navigation(navigation)
follow_packed_link()
with st.sidebar:
    runs_in_progress()
page.run()
