"""The translation in large letters, with the English of each French word beneath it where the corpus knows that, and
what became of "it"."""

from html import escape

import streamlit as st

from pages.home import said
from pages.shared import loading, wording
from pages.shared.context import Decoded
from pages.shared.texts.catalogue import Texts
from transformer.data.corpora import PRONOUNS
from transformer.data.pronouns.glosses import Gloss, glosses

TEXTS = Texts("home")


def render_translation(context: Decoded, change: str = "") -> None:
    """Renders what the model wrote and what it made of "it"; `change` says what differs from the sentence before."""
    seen, gold = context.inspection, loading.reference(context.lab, context.view.text)
    genders = said.genders(seen.translation, gold)
    if seen.translation and context.lab.checkpoint.settings.corpus.name == PRONOUNS:
        _render_glossed(context.view.text, seen.translation, with_genders=bool(genders))
    else:
        st.markdown(f"## {wording.plain(seen.translation) or TEXTS('nothing')}")
    sentences = (change, genders, said.pronoun(seen, gold), said.reference(seen.translation, gold))
    if any(sentences):
        st.markdown(" ".join(filter(None, sentences)))


def _render_glossed(text: str, translation: str, *, with_genders: bool) -> None:
    """Renders a French translation over its English; nouns and pronouns are marked as masculine or feminine if asked.

    In a narrow window, whose field cuts it off, the sentence stands above.
    """
    glossed = "".join(_word(gloss, with_genders) for gloss in glosses(translation))
    st.html(f'<p class="home-sentence">{escape(text)}</p><p class="home-translation" lang="fr">{glossed}</p>')


def _word(gloss: Gloss, with_gender: bool) -> str:
    """Returns French words over their English. A space after them is one, so that copied text is the translation."""
    french = gloss.french.rstrip()
    space = " " if french != gloss.french else ""
    if not gloss.english:
        return f"<span>{escape(french)}</span>{space}"
    english = gloss.english
    if with_gender and gloss.feminine is not None:
        english = TEXTS("feminine", noun=english) if gloss.feminine else TEXTS("masculine", noun=english)
    return f'<ruby>{escape(french)}<rt lang="en">{escape(english)}</rt></ruby>{space}'
