"""The text through the tokenizer of a model, shipped or one's own."""

import streamlit as st

from pages.shared import loading, wording
from pages.tokenizers.choices import PAGE, Choices
from pages.tokenizers.learned import choose_text
from pages.tokenizers.merges import render_steps
from pages.tokenizers.models import choose_model
from pages.tokenizers.side_by_side import KINDS, render_tokens
from transformer.views.tokens.merges import bpe_of
from transformer.views.tokens.subjects import CutText


def render_model_tokens(chosen: Choices) -> None:
    """Renders the tokens that a model reads, and the merges that made them if it learned any."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        lab = choose_model(chosen)
        if lab is None:
            return
        with st.popover("Examples"):
            for text in loading.examples(lab):
                label = wording.plain(text)
                st.button(label, key=f"sample-{text}", type="tertiary", on_click=PAGE.change, kwargs={"text": text})
    choose_text(chosen)
    kind = KINDS[lab.tokenizer.kind]
    render_tokens(lab, chosen.text, kind, key="of-model")
    ids = " ".join(map(str, lab.tokenizer.encode(chosen.text)))
    st.caption(f"The model reads their numbers, and an end mark behind them: {ids}")
    try:
        bpe_of(lab)
    except ValueError:
        st.caption(
            wording.plain(f"{lab.name} has a tokenizer of the kind {kind}: there are no merges to step through.")
        )
        return
    st.markdown("## Its merges")
    render_steps(CutText(lab, chosen.text), chosen)
