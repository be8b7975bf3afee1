"""One text as characters, words, BPE pieces and unigram pieces, each with its number of tokens."""

import streamlit as st

from pages.shared import wording
from pages.shared.components.tokens import token_chips
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.tokenizers.choices import Choices
from pages.tokenizers.learned import choose_text_and_source, learned
from transformer.data.corpora import CorpusError
from transformer.data.corpus_cache import LearnedTokenizer
from transformer.interventions.names import plural
from transformer.lab import Lab
from transformer.text.token_ids import UNK
from transformer.text.tokenizer import Tokenizer, TokenizerError, TokenizerKind
from transformer.views.tokens.subjects import CutText
from transformer.views.tokens.text_tokens import TextTokens, TokensData

KINDS: dict[TokenizerKind, str] = {"char": "Characters", "words": "Words", "bpe": "BPE", "unigram": "Unigram"}


def render_side_by_side(chosen: Choices) -> None:
    """Renders the text through a tokenizer of each kind."""
    choose_text_and_source(chosen)
    for kind, name in KINDS.items():
        try:
            source = learned(chosen, kind)
        except CorpusError as error:
            say(sentence(str(error)))
            return
        except TokenizerError as error:
            say(f"{name}: {sentence(str(error))}")
            continue
        render_tokens(source, chosen.text, name, key=kind)
    unknown = wording.plain("<unk>")
    st.caption(
        "All four learned from the same text. Characters and words replace whatever they never saw by one token, "
        f"{unknown}, which reads back as ⁇; BPE and unigram spell it in bytes instead. ▁ is the space before a word. "
        "Fewer tokens make shorter sequences, and the cost of attention grows with the square of their length."
    )


def render_tokens(source: Lab | LearnedTokenizer, text: str, name: str, *, key: str) -> None:
    """Renders the tokens of a text as chips, under their number and with what is lost."""
    tokenizer = source.tokenizer

    def draw(data: TokensData) -> None:
        count, unseen = len(data.tokens), tokenizer.sentence(text).unseen_tokens
        label = f"{name}: {count} {plural(count, 'token')}"
        token_chips(data.tokens, label=label, unseen=unseen, key=f"tokenizers-{key}")

    exhibit(CutText(source, text), TextTokens(), draw=draw, note=wording.plain(_losses(tokenizer, text)), key=key)


def _losses(tokenizer: Tokenizer, text: str) -> str:
    """Says how large the vocabulary is, how short it makes the text, and what is lost of it."""
    ids = tokenizer.encode(text)
    n_bytes = sum(tokenizer.piece(token).startswith("<0x") for token in ids)
    said = [f"Vocabulary {tokenizer.vocab_size:,}", f"{len(text) / max(len(ids), 1):.1f} characters a token"]
    said += [f"{n} {what}" for n, what in ((ids.count(UNK), "unknown"), (n_bytes, "in bytes")) if n]
    again = tokenizer.decode(ids)
    said.append("reads back exactly" if again == text else f"reads back as “{again}”")
    return f"{'; '.join(said)}."
