"""A text as a tokenizer cuts it: its tokens and their numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.tokens.reference import pieces_again
from transformer.data.corpus_cache import LearnedTokenizer
from transformer.figures.tables import column_table, numbered
from transformer.figures.tokens.merges import Block, merges_figure
from transformer.lab import Lab
from transformer.text.token_ids import valid_text


@dataclass(frozen=True)
class TokensData:
    """The tokens of a text, without the end mark."""

    tokens: tuple[str, ...]
    """The entry of each in the vocabulary."""
    ids: Int[ndarray, " token"]
    """The place of that entry."""


@dataclass(frozen=True, kw_only=True)
class TextTokens:
    """The tokens of a text, each a box as wide as its characters."""

    name = "text-tokens"
    explained = (
        "How a tokenizer cuts the text: each box is a token, an entry of the vocabulary, and its number there is all "
        "that a model reads of it. ▁ is the space before a word. What the vocabulary has no entry for is <unk>, or is "
        "spelled in bytes, such as <0xF0>, where there is an entry for each of the 256."
    )

    def data(self, source: Lab | LearnedTokenizer, text: str) -> TokensData:
        """Cuts the text; ValueError for one that the tokenizer cannot read."""
        read = source.tokenizer.sentence(text)
        return TokensData(read.tokens[:-1], np.array(read.ids[:-1], dtype=np.int64))

    def figure(self, data: TokensData, *, dark: bool = False) -> go.Figure:
        """A row of boxes."""
        starts = accumulate(map(len, data.tokens), initial=0)
        placed = enumerate(zip(starts, data.tokens, data.ids.tolist(), strict=False))
        blocks = [Block(token, start, 0, f"token {i}, number {number}") for i, (start, token, number) in placed]
        return merges_figure(blocks, 0, dark=dark)

    def tables(self, data: TokensData) -> tuple[DataFrame, ...]:
        """The number of each token."""
        return (column_table("tokens", numbered(data.tokens), {"number": data.ids}),)

    def checks(self, source: Lab | LearnedTokenizer, text: str, data: TokensData) -> Iterator[Check]:
        """Cuts the text by plain Python, and looks each token up in the vocabulary."""
        entries = {entry: number for number, entry in enumerate(source.tokenizer.vocabulary())}
        cut = [entries[piece] for piece in pieces_again(source.tokenizer)(valid_text(text))]
        yield agree("Tokens of the text", data.ids, cut, 0, "cut by plain Python from the list of entries")
        named = [entries[token] for token in data.tokens]
        yield agree("The number of each token", data.ids, named, 0, "its entry looked up in the vocabulary")
