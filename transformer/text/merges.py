"""BPE by hand: the merges that build a text's pieces, one by one, from nothing but the model's list of pieces.

Sennrich et al. 2016, section 3.2. sentencepiece's own segmentation is not asked, so that either checks the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer

SPACE = "▁"


@dataclass(frozen=True)
class Merge:
    """Two pieces that become one, at every place where that happens at this point."""

    rank: int
    """Its place among all merges that the tokenizer learned, from 0."""
    left: str
    right: str
    starts: tuple[int, ...]
    """The characters of the text, spaces marked, at which the new pieces begin."""
    pieces: tuple[str, ...]
    """All pieces of the text afterwards."""

    @property
    def piece(self) -> str:
        """Returns the new piece."""
        return self.left + self.right


def marked(text: str) -> str:
    """Returns a text as sentencepiece cuts it: with a mark for each space, and one before the first word."""
    return SPACE + text.replace(" ", SPACE) if text else ""


def merge_ranks(tokenizer: SentencePieceTokenizer) -> dict[str, int]:
    """Returns the rank of each piece that a merge makes; ValueError for a tokenizer that is not bpe."""
    if tokenizer.kind != "bpe":
        raise ValueError(f"a {tokenizer.kind} tokenizer learns no merges: choose a bpe tokenizer")
    scores = tokenizer.scores()
    made = [
        (-scores[token], piece)
        for token, piece in enumerate(tokenizer.vocabulary())
        if len(piece) > 1 and not tokenizer.is_special(token)
    ]
    return {piece: rank for rank, (_, piece) in enumerate(sorted(made))}


def merges(ranks: Mapping[str, int], text: str) -> tuple[Merge, ...]:
    """Returns the merges that build the pieces of a text, in order: always the earliest learned, leftmost first."""
    pieces, found = list(marked(text)), []
    while True:
        joined = [left + right for left, right in pairwise(pieces)]
        places = [(ranks[piece], i) for i, piece in enumerate(joined) if piece in ranks]
        if not places:
            return tuple(found)
        rank, i = min(places)
        left, right = pieces[i : i + 2]
        start = sum(map(len, pieces[:i]))
        pieces[i : i + 2] = [left + right]
        last = found[-1] if found else None
        if last and (last.left, last.right) == (left, right):
            found[-1] = replace(last, starts=(*last.starts, start), pieces=tuple(pieces))
        else:
            found.append(Merge(rank, left, right, (start,), tuple(pieces)))


def spelled(piece: str) -> tuple[str, ...]:
    """Returns a character without a piece of its own as the pieces of its bytes."""
    return tuple(f"<0x{byte:02X}>" for byte in piece.encode())
