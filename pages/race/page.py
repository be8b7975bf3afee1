"""Race: two settings learn the same task side by side, on the same data and seed."""

import streamlit as st

from pages.race.choices import PAGE, Race
from pages.race.track import race_panel
from pages.shared.context import say
from pages.training.live.reading import FIELD

PAGE.follow_url()
st.markdown("# Race two settings against each other")
say(*PAGE.said(*(name for name in Race.names() if name != FIELD)))
race_panel()
PAGE.write_url()
