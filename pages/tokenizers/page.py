"""Tokenizer lab: how text becomes tokens, what each way costs, and where a model puts its tokens."""

import streamlit as st

from pages.shared.context import say
from pages.shared.fields import segments
from pages.tokenizers.choices import PAGE, SECTIONS
from pages.tokenizers.embeddings import render_map
from pages.tokenizers.merges import render_merges
from pages.tokenizers.model_tokens import render_model_tokens
from pages.tokenizers.side_by_side import render_side_by_side
from pages.tokenizers.sizes import render_sizes
from pages.tokenizers.unknown import render_unknown
from pages.training.bring import PLACE

RENDERED = {
    "split": render_side_by_side,
    "merges": render_merges,
    "unknown": render_unknown,
    "sizes": render_sizes,
    "model": render_model_tokens,
    "map": render_map,
}

chosen = PAGE.follow_url()
st.markdown("# How does text become tokens?")
say(*(said for place, said in PAGE.problems.items() if place != PLACE))
segments("Look at", SECTIONS, chosen.section, PAGE.take("section"), key="tokenizers-section")
RENDERED[chosen.section](chosen)
PAGE.write_url()
