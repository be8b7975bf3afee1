"""Playground: press Play and watch a small Transformer learn; turn a knob and it starts again."""

import streamlit as st

from pages.playground.choices import PAGE, Knobs
from pages.playground.live import live_panel
from pages.shared.context import say
from pages.shared.texts.catalogue import Texts
from pages.training.live.reading import FIELD

TEXTS = Texts("playground")

PAGE.follow_url()
st.markdown(f"# {TEXTS('heading')}")
say(*PAGE.said(*(name for name in Knobs.names() if name != FIELD)))
live_panel()
PAGE.write_url()
