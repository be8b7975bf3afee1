"""The app's frame: its pages, its look, and the runs in progress in the sidebar. No logic."""

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from pages.shared.components.terms import explain_terms
from pages.shared.context import is_dark
from pages.shared.further import lead_further
from pages.shared.guard import guard, guard_callbacks, render_failures
from pages.shared.registry import PAGES
from pages.shared.saved.page_end import saved_and_reported
from pages.shared.serving.admission import admit
from pages.shared.url.cause import tell_looks_apart
from pages.shared.url.packed_link import follow_packed_link
from pages.shared.url.session import enter_page, note_url
from pages.shared.visitors.current import admit_visitor
from pages.shared.visitors.sharing import follow_share_link
from pages.training.run_status import runs_in_progress
from transformer.access.people import acting
from transformer.access.server_settings import identity

HERE = Path(__file__).parent

st.set_page_config(page_title="Attention Lab", page_icon=str(HERE / "static" / "mark.svg"), layout="wide")
# Menus open outside the part of the page whose scheme Streamlit sets. An element of its own would move the page down.
scheme = f":root {{ color-scheme: {'dark' if is_dark() else 'light'} }}"
st.html(f"<style>{scheme}\n{(HERE / 'static' / 'frame.css').read_text(encoding='utf-8')}</style>")
st.logo(HERE / "static" / "logo.svg", size="large", icon_image=HERE / "static" / "mark.svg")

guard_callbacks()
tell_looks_apart()
admit_visitor()
navigation: dict[str, list[StreamlitPage]] = {}
for entry in PAGES:
    for_me = acting().is_teacher if entry.only_for_teachers else True
    shown = "hidden" if not for_me or (entry.only_for_several and identity().is_one_person) else "visible"
    found = st.Page(entry.path, title=entry.title, url_path=entry.url, default=entry is PAGES[0], visibility=shown)
    navigation.setdefault(entry.section, []).append(found)
page = st.navigation(navigation, expanded=True)  # with runs below it, Streamlit would fold the last pages away
admit()
follow_share_link()
follow_packed_link()
enter_page(page.title)
with st.sidebar:
    with guard("The progress of runs"):
        runs_in_progress()
explain_terms()
with saved_and_reported(page.title), guard("The rest of this page"):
    page.run()
lead_further(next(entry for entry in PAGES if entry.title == page.title))
note_url()
render_failures()
