"""Measures exact match by sentence length, inside and outside the lengths of training, with counts and intervals."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from transformer.data.batches import encode_sources
from transformer.decoding.greedy import translate_ids
from transformer.model.position_extension import Extension, extended
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training.metrics import exact_match

Z95 = 1.959963984540054
"""Standard normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True)
class LengthScore:
    """The number of correct outputs for sentences of one length."""

    length: int
    """The number of words, the end mark not counted."""
    right: int
    count: int
    """0 where the model refused this length."""


def wilson(right: int, count: int) -> tuple[float, float]:
    """Returns the 95 % interval of Wilson (1927) for a share, which has a sensible width at 0 and 1 too.

    (0, 1) where nothing was counted.
    """
    if not 0 <= right <= count:
        raise ValueError(f"right ({right}) must lie between 0 and count ({count})")
    if count == 0:
        return 0.0, 1.0
    share, z2 = right / count, Z95**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z95 / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return 0.0 if right == 0 else low, 1.0 if right == count else high


def scores_by_length(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Mapping[int, Sequence[Pair]],
    how: Extension,
    *,
    trained: int,
    progress: Callable[[int], object] | None = None,
) -> tuple[LengthScore, ...]:
    """Translates greedily at each length, with the positions extended as far as that length needs.

    `trained` is the number of positions that training reached. A length that the positions refuse has a count of 0.
    `progress` is called with each length that is done.
    """
    found = []
    for length in sorted(pairs):
        found.append(_score(model, tokenizer, length, pairs[length], how, trained))
        if progress is not None:
            progress(length)
    return tuple(found)


def _score(
    model: Transformer, tokenizer: Tokenizer, length: int, pairs: Sequence[Pair], how: Extension, trained: int
) -> LengthScore:
    tokens = 1 + max((len(tokenizer.encode(text)) for pair in pairs for text in (pair.source, pair.target)), default=0)
    if not pairs:
        return LengthScore(length, 0, 0)
    try:
        longer = extended(model, tokens, how, trained=trained)
    except ValueError:
        return LengthScore(length, 0, 0)
    source, mask = encode_sources([pair.source for pair in pairs], tokenizer, max_length=tokens)
    # An output that has not ended by the length of the longest answer, its end mark included, is wrong.
    outputs = translate_ids(longer, source, mask, max_length=tokens)
    share = exact_match([tokenizer.decode(ids) for ids in outputs], [pair.target for pair in pairs])
    return LengthScore(length, round(share * len(pairs)), len(pairs))
