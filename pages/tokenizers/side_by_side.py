"""One text as characters, words, BPE pieces and unigram pieces, each with its number of tokens."""

import streamlit as st

from pages.shared import wording
from pages.shared.components.tokens import token_chips
from pages.shared.context import say, sentence
from pages.tokenizers.choices import Choices
from pages.tokenizers.learned import choose_text_and_source, learned
from transformer.data.corpora import CorpusError
from transformer.interventions.names import plural
from transformer.text.tokenizer import Tokenizer, TokenizerError, TokenizerKind

KINDS: dict[TokenizerKind, str] = {"char": "Characters", "words": "Words", "bpe": "BPE", "unigram": "Unigram"}


def render_side_by_side(chosen: Choices) -> None:
    """Renders the text through a tokenizer of each kind."""
    choose_text_and_source(chosen)
    for kind, name in KINDS.items():
        try:
            tokenizer = learned(chosen, kind).tokenizer
        except CorpusError as error:
            say(sentence(str(error)))
            return
        except TokenizerError as error:
            say(f"{name}: {sentence(str(error))}")
            continue
        render_tokens(tokenizer, chosen.text, name, key=f"tokenizers-{kind}")
    unknown = wording.plain("<unk>")
    st.caption(
        "All four learned from the same text. Characters and words replace whatever they never saw by one token, "
        f"{unknown}, which reads back as ⁇; BPE and unigram spell it in bytes instead. ▁ is the space before a word. "
        "Fewer tokens make shorter sequences, and the cost of attention grows with the square of their length."
    )


def render_tokens(tokenizer: Tokenizer, text: str, name: str, *, key: str) -> None:
    """Renders the tokens of a text as chips, under their number and with what is lost."""
    read = tokenizer.sentence(text)
    tokens, ids = read.tokens[:-1], read.ids[:-1]  # without the end mark
    count = len(tokens)
    token_chips(tokens, label=f"{name}: {count} {plural(count, 'token')}", unseen=read.unseen_tokens, key=key)
    said = f"Vocabulary {tokenizer.vocab_size:,}; {len(text) / max(count, 1):.1f} characters a token; "
    again = tokenizer.decode(ids)
    said += "reads back exactly." if again == text else f"reads back as “{again}”."
    st.caption(wording.plain(said))
