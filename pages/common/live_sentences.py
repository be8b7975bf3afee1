"""The pinned sentences of a run, going from babble to right."""

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.common.live_data import Sample
from pages.common.live_frontend import text_of

_component = st.components.v2.component(
    "attention_lab_live_sentences",
    html="<div class='root'></div>\n",
    css=text_of("live_sentences.css"),
    js=text_of("live_sentences.js"),
)


def live_sentences(sources: Sequence[str], samples: Mapping[str, Sequence[Sample]], *, key: str) -> None:
    """Draws each source with its newest translation large and the earlier ones as a small history."""
    sentences = [
        {
            "source": source,
            "samples": [{"step": sample.step, "translation": sample.translation} for sample in samples.get(source, ())],
        }
        for source in sources
    ]
    _component(key=key, data={"sentences": sentences})
