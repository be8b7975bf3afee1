"""BPE's merges on a text, one by one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.data.corpus_cache import LearnedTokenizer
from transformer.figures.tables import column_table, numbered
from transformer.figures.tokens.merges import Block, merges_figure
from transformer.lab import Lab
from transformer.text.merges import Merge, marked, merge_ranks, merges, spelled
from transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer.views.view import OF_FIGURE


@dataclass(frozen=True)
class MergesData:
    """The merges of a text, in order."""

    characters: str
    """The text before the first, spaces marked."""
    merges: tuple[Merge, ...]
    learned: int
    """All merges that the tokenizer learned."""
    counts: Int[ndarray, " step"]
    """The number of pieces before the first merge, and after each."""

    def pieces(self, step: int) -> tuple[str, ...]:
        """Returns the pieces after so many merges."""
        return self.merges[step - 1].pieces if step else tuple(self.characters)


@dataclass(frozen=True, kw_only=True)
class BpeMerges:
    """The merges that build the pieces of a text, by a BPE model's own list of pieces."""

    step: int = field(default=9_999, metadata=OF_FIGURE)
    """The number of merges that are made."""
    name = "bpe-merges"
    explained = (
        "How byte-pair encoding cuts a text: it begins with single characters and joins the pair that it learned to "
        "join first, then the next, until no rule applies. Each bar is a piece, above the two that it was joined from. "
        "Frequent words end as one piece, rare ones in several."
    )

    def data(self, source: Lab | LearnedTokenizer, text: str) -> MergesData:
        """Merges pair after pair, the earliest learned first; ValueError for a tokenizer that is not bpe."""
        ranks = merge_ranks(bpe_of(source))
        found = merges(ranks, text)
        counts = accumulate((-len(merge.starts) for merge in found), initial=len(marked(text)))
        return MergesData(marked(text), found, len(ranks), np.array(list(counts)))

    def figure(self, data: MergesData, *, dark: bool = False) -> go.Figure:
        """A bar for each piece, above those that it is made of."""
        blocks = [Block(c, start, 0, f"character {c}") for start, c in enumerate(data.characters)]
        for step, merge in enumerate(data.merges, start=1):
            says = f"step {step}, merge {merge.rank + 1:,} of {data.learned:,}: {merge.left} + {merge.right}"
            blocks += [Block(merge.piece, start, step, says) for start in merge.starts]
        return merges_figure(blocks, self.step, dark=dark)

    def tables(self, data: MergesData) -> tuple[DataFrame, ...]:
        """The rank of each merge, and the pieces that are left."""
        rows = numbered([f"{merge.left} + {merge.right}" for merge in data.merges])
        ranks = np.array([merge.rank for merge in data.merges], dtype=np.int64)
        counts = column_table("pieces", [f"{i} merges" for i in range(len(data.counts))], {"pieces": data.counts})
        return column_table("merges", rows, {"merges learned before it": ranks}), counts

    def checks(self, source: Lab | LearnedTokenizer, text: str, data: MergesData) -> Iterator[Check]:
        """Asks the tokenizer itself for the tokens, and follows the boundaries between pieces."""
        tokenizer = bpe_of(source)
        entries = tokenizer.vocabulary()
        ids = {entry: token for token, entry in enumerate(entries)}
        last = [
            part for piece in data.pieces(len(data.merges)) for part in ((piece,) if piece in ids else spelled(piece))
        ]
        made = [ids[piece] for piece in last]
        how = "the tokenizer asked; ids compared"
        yield agree("All merges together give the tokenizer's own tokens", made, tokenizer.encode(text), 0, how)
        multiple = [entry for i, entry in enumerate(entries) if len(entry) > 1 and not tokenizer.is_special(i)]
        yield agree("Merges that were learned", data.learned, len(multiple), 0, "entries of several characters counted")
        ranks = [multiple.index(merge.piece) for merge in data.merges]
        how = "entries before it in the vocabulary counted"
        yield agree("The rank of each merge", [merge.rank for merge in data.merges], ranks, 0, how)
        steps = [data.pieces(step) for step in range(len(data.merges) + 1)]
        yield agree("Pieces after each merge", data.counts, [len(pieces) for pieces in steps], 0, "pieces counted")
        gone = [sorted(_ends(a) - _ends(b)) for a, b in pairwise(steps)]
        starts = [end - len(merge.left) for merge, ends in zip(data.merges, gone, strict=True) for end in ends]
        shown = [start for merge in data.merges for start in merge.starts]
        yield agree("Each merge takes away the boundary of its two pieces", shown, starts, 0, "boundaries compared")


def bpe_of(source: Lab | LearnedTokenizer) -> SentencePieceTokenizer:
    """Returns a tokenizer that learned merges; ValueError for one that did not."""
    tokenizer = source.tokenizer
    if not isinstance(tokenizer, SentencePieceTokenizer) or tokenizer.kind != "bpe":
        raise ValueError(f"there are no merges: this is a tokenizer of the kind {tokenizer.kind}")
    return tokenizer


def _ends(pieces: tuple[str, ...]) -> set[int]:
    return set(accumulate(map(len, pieces)))
