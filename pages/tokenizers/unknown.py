"""Characters that no tokenizer learned: what each reads in their place, and what comes back."""

import streamlit as st

from pages.shared import wording
from pages.shared.context import say, sentence
from pages.tokenizers.choices import PAGE, Choices
from pages.tokenizers.learned import choose_corpus, choose_size, choose_text, learned
from pages.tokenizers.side_by_side import KINDS, render_tokens
from transformer.analysis.tokens.unknown import Fate, cut_short, fates
from transformer.data.corpora import CorpusError
from transformer.text.tokenizer import Tokenizer, TokenizerError

SAMPLES = {
    "An emoji": "The 🦔 did not cross the street.",
    "A family": "The 👩‍👧 crossed.",
    "Korean": "The cat, 고양이, was tired.",
    "An accent": "The naïve cat ate a jalapeño.",
    "A typo": "The anmial was tierd.",
}


def render_unknown(chosen: Choices) -> None:
    """Renders the unknown characters of the text, and how each tokenizer reads it back."""
    choose_text(chosen)
    with st.container(horizontal=True, gap="small"):
        for label, text in SAMPLES.items():
            st.button(label, key=f"sample-{label}", type="tertiary", on_click=PAGE.change, kwargs={"text": text})
    left, right = st.columns(2, gap="large", vertical_alignment="bottom")
    with left:
        choose_corpus(chosen)
    with right:
        choose_size(chosen)
    try:
        sources = {kind: learned(chosen, kind) for kind in KINDS}
        tokenizers = {kind: source.tokenizer for kind, source in sources.items()}
    except (CorpusError, TokenizerError) as error:
        say(sentence(str(error)))
        return
    found = fates(chosen.text, tokenizers)
    if found:
        st.markdown("## Characters without a token")
        titles = ("character", "Unicode", "UTF-8", *KINDS.values())
        st.markdown(wording.table(titles, [_fate_row(fate) for fate in found]))
        _render_cut_short(found[0], tokenizers["bpe"])
    else:
        st.markdown("Every character of this text has a token of its own in all four. Try one of the samples.")
    st.markdown("## The whole text, read back")
    for kind, source in sources.items():
        render_tokens(source, chosen.text, KINDS[kind], key=kind)
    st.caption(
        "Words lose a whole word to one unknown letter, and a word that was merely never seen too. Characters lose the "
        "letter. With 256 entries for single bytes nothing is ever lost, but a character takes up to four tokens, and "
        "what the model knows about those bytes is only what it saw of them in training, which may be nothing."
    )


def _fate_row(fate: Fate) -> tuple[str, ...]:
    read = (" ".join(fate.read[kind]) for kind in KINDS)
    return fate.character, f"{fate.code_point}, {fate.name}", fate.encoded.hex(" ").upper(), *read


def _render_cut_short(fate: Fate, tokenizer: Tokenizer) -> None:
    """Says what a part of a character's bytes reads back as."""
    parts = cut_short(tokenizer, fate.character)
    if len(parts) > 1:
        said = "; ".join(
            f"{n} of {len(parts)}: “{wording.plain(part.strip())}”" for n, part in enumerate(parts, start=1)
        )
        st.markdown(f"{wording.plain(fate.character)} from its first bytes alone, as a model writes them: {said}.")
