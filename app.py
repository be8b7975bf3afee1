"""The app's frame: its pages, its look, and the runs in progress in the sidebar. No logic."""

from pathlib import Path

import streamlit as st

from pages.shared.url.packed_link import follow_packed_link
from pages.training.sidebar import runs_in_progress

HERE = Path(__file__).parent

st.set_page_config(page_title="Attention Lab", page_icon=str(HERE / "static" / "mark.svg"), layout="wide")
st.html(HERE / "static" / "frame.css")
st.logo(HERE / "static" / "logo.svg", size="large", icon_image=HERE / "static" / "mark.svg")

pages = {
    "Explore": [
        st.Page("pages/home/page.py", title="Home", url_path="home", default=True),
        st.Page("pages/attention/page.py", title="Attention", url_path="attention"),
        st.Page("pages/heads/page.py", title="Heads", url_path="heads"),
        st.Page("pages/masks/page.py", title="Masks", url_path="masks"),
        st.Page("pages/steps/page.py", title="Decoder steps", url_path="decoder-steps"),
        st.Page("pages/walkthrough/page.py", title="Walkthrough", url_path="walkthrough"),
        st.Page("pages/compare/page.py", title="Two at once", url_path="two-at-once"),
        st.Page("pages/positions/page.py", title="Positions", url_path="positions"),
    ],
    "Train": [
        st.Page("pages/train/page.py", title="Train", url_path="train"),
        st.Page("pages/runs/page.py", title="Runs", url_path="runs"),
    ],
}
page = st.navigation(pages)
follow_packed_link()
with st.sidebar:
    runs_in_progress()
page.run()
