"""Vocabulary size against the length of sentences and against the words that are covered."""

import streamlit as st

from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.tokenizers.choices import Choices
from pages.tokenizers.learned import choose_corpus, config_of
from transformer.analysis.tokens.vocabulary_sizes import SizeCurve
from transformer.data.corpora import CorpusError
from transformer.text.tokenizer import TokenizerError
from transformer.views.subjects import Text
from transformer.views.tokens.vocabulary import NAMES, VocabularySizes


def render_sizes(chosen: Choices) -> None:
    """Renders the figure for the chosen corpus, and its ends in a sentence."""
    choose_corpus(chosen)
    view = VocabularySizes()
    try:
        with st.spinner("Learning tokenizers of many sizes"):
            data = exhibit(Text(config_of(chosen)), view)
    except (CorpusError, TokenizerError) as error:
        say(sentence(str(error)))
        return
    if data is None:
        return
    st.markdown("  \n".join(map(_curve_text, data.curves)))
    st.caption(
        f"Learned from at most {view.learned_from:,} training pairs and measured on both sides of {data.pairs:,} pairs "
        "that were held out. A word is covered if it is read without an unknown token and without single bytes. Where "
        "the text does not allow a size, a kind takes the nearest. A larger vocabulary makes sentences shorter, but "
        "each entry is seen less often, and the embedding grows by a row for each."
    )


def _curve_text(curve: SizeCurve) -> str:
    ends = dict.fromkeys((0, len(curve.sizes) - 1))
    said = "; ".join(
        f"{curve.length[i]:.1f} tokens, {100 * curve.covered[i]:.1f} % covered at {curve.sizes[i]:,} entries"
        for i in ends
    )
    name = NAMES[curve.kind]
    return f"**{name[:1].upper()}{name[1:]}**: {said}."
