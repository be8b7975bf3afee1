"""Segmentation by plain Python, which shares no code with the tokenizers: for checks."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from transformer.text.merges import SPACE, marked, merge_ranks, merges, spelled
from transformer.text.pairs import words
from transformer.text.sentencepiece_tokenizer import SentencePieceTokenizer
from transformer.text.token_ids import SPECIALS, UNK
from transformer.text.tokenizer import Tokenizer

UNKNOWN = SPECIALS[UNK]
_PENALTY = 10.0
"""How far sentencepiece puts a character without a piece below its least likely piece."""


def pieces_again(tokenizer: Tokenizer) -> Callable[[str], list[str]]:
    """Returns a function that cuts a text as this tokenizer should, from its list of entries alone."""
    if not isinstance(tokenizer, SentencePieceTokenizer):
        known = set(tokenizer.vocabulary())
        return lambda text: [word if word in known else UNKNOWN for word in words(text)]
    if tokenizer.kind == "char":
        return _characters(set(tokenizer.vocabulary()))
    scores = tokenizer.scores()
    kept = {piece: scores[i] for i, piece in enumerate(tokenizer.vocabulary()) if not tokenizer.is_special(i)}
    ranks = merge_ranks(tokenizer) if tokenizer.kind == "bpe" else {}

    @cache
    def cut(chunk: str) -> tuple[str, ...]:
        start = marked(chunk) or SPACE  # nothing between two spaces
        found = _merged(ranks, chunk, start) if ranks else most_probable(kept, start)
        return tuple(part for piece in found for part in ((piece,) if piece in kept else spelled(piece)))

    return lambda text: [piece for chunk in text.split(" ") for piece in cut(chunk)] if text else []


def _merged(ranks: Mapping[str, int], chunk: str, start: str) -> Iterable[str]:
    found = merges(ranks, chunk)
    return found[-1].pieces if found else start


def most_probable(scores: Mapping[str, float], text: str) -> list[str]:
    """Returns the pieces whose log-probabilities have the largest sum (Kudo 2018, section 3.2), by Viterbi's algorithm.

    A character without a piece is one by itself, less likely than any other.
    """
    longest = max(map(len, scores))
    least = min(scores.values()) - _PENALTY
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(text) + 1):
        reached = [(-math.inf, 0)]
        for start in range(max(0, end - longest), end):
            piece = text[start:end]
            if piece in scores or end - start == 1:
                reached.append((best[start][0] + scores.get(piece, least), start))
        best.append(max(reached))
    pieces, end = [], len(text)
    while end:
        start = best[end][1]
        pieces.append(text[start:end])
        end = start
    return pieces[::-1]


def _characters(known: set[str]) -> Callable[[str], list[str]]:
    """Returns a function that cuts into characters; a run of unknown ones is one token."""

    def cut(text: str) -> list[str]:
        found: list[str] = []
        for character in text.replace(" ", "▁"):
            piece = character if character in known else UNKNOWN
            if not (piece == UNKNOWN and found and found[-1] == UNKNOWN):
                found.append(piece)
        return found

    return cut
