"""One matrix out of many: subwords merged into words, heads combined, special tokens and weak cells left out; and the
entropy of rows.

Plain arrays in and out; nothing here runs a model. The order in which a picture applies them is that of this file.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from transformer.training.metrics import attention_entropy, merge_to_words

Combination = Literal["mean", "max"]
Unit = Literal["nats", "bits"]
Marks = Literal["shown", "hidden", "renormalised"]
"""The treatment of start and end marks: drawn, left out, or left out with rows scaled to sum to 1 again."""


def group_tokens(words: Sequence[int]) -> tuple[int, ...]:
    """Returns the group of each token, from 0: the pieces of a word are one, and so is each token of no word (-1).

    `words` is what `Sentence.words` and `Tokenizer.word_of_output` give, with -1 for start and end marks.
    """
    groups: list[int] = []
    for index, word in enumerate(words):
        goes_on = index > 0 and word >= 0 and word == words[index - 1]
        groups.append(groups[-1] + (not goes_on) if groups else 0)
    return tuple(groups)


def merge_words(
    values: Float[ndarray, "*rows query key"], query_groups: Sequence[int], key_groups: Sequence[int]
) -> Float[ndarray, "*rows query_word key_word"]:
    """Returns values between words: to a word summed over its pieces, from a word averaged over its pieces.

    This is the definition of Clark et al. (2019), "What Does BERT Look At?", section 4.1; with it a row that sums to 1
    still does. Groups are those of `group_tokens`.
    """
    return merge_to_words(values, query_groups, key_groups).astype(values.dtype)


def merge_masks(
    mask: Bool[ndarray, "query key"], query_groups: Sequence[int], key_groups: Sequence[int]
) -> Bool[ndarray, "query_word key_word"]:
    """Returns True where any piece of the one word may see any piece of the other."""
    return merge_to_words(mask.astype(np.float64), query_groups, key_groups) > 0


def combine_heads(
    values: Float[ndarray, "head query key"], heads: Sequence[int], how: Combination
) -> Float[ndarray, "query key"]:
    """Returns the mean or the largest value of these heads in each cell; for a single head, its values bit for bit.

    A mean of rows that sum to 1 sums to 1; a row of largest values sums to 1 or more. ValueError for no head, or one
    that does not exist.
    """
    n_heads = len(values)
    missing = [head for head in heads if not 0 <= head < n_heads]
    if not heads or missing:
        named = f"head {missing[0]} does not exist" if missing else "there is no head to combine"
        raise ValueError(f"{named}: choose some of the heads 0 to {n_heads - 1}")
    chosen = values[list(heads)]
    if len(chosen) == 1 or how == "max":
        return chosen.max(axis=0)
    return chosen.mean(axis=0, dtype=np.float64).astype(values.dtype)


def strongest_head(values: Float[ndarray, "head query key"], heads: Sequence[int]) -> Int[ndarray, "query key"]:
    """Returns the head with the largest value in each cell; the first of several."""
    return np.asarray(heads)[values[list(heads)].argmax(axis=0)]


def leave_out(
    values: Float[ndarray, "query key"], rows: Sequence[bool], columns: Sequence[bool]
) -> tuple[Float[ndarray, "kept_query kept_key"], float]:
    """Returns the values without these rows and columns, and how much of the kept rows lay in the columns.

    Rows are not renormalised. The share is 0..1 of all that the kept rows held; 0 where they held nothing.
    """
    kept = values[~np.asarray(rows, dtype=bool)]
    gone = np.asarray(columns, dtype=bool)
    total = float(kept.sum(dtype=np.float64))
    return kept[:, ~gone], float(kept[:, gone].sum(dtype=np.float64)) / total if total else 0.0


def renormalise(values: Float[ndarray, "query key"]) -> Float[ndarray, "query key"]:
    """Divides each row by its sum; a row of zeros stays one."""
    sums = values.sum(axis=-1, keepdims=True, dtype=np.float64)
    return (values / np.where(sums > 0, sums, 1.0)).astype(values.dtype)


def below(
    values: Float[ndarray, "*rows query key"], threshold: float
) -> tuple[Bool[ndarray, "*rows query key"], float]:
    """Returns the cells below the threshold, and their share, 0..1, of the sum of all; 0 where that is 0.

    A cell of exactly 0 is below every threshold above 0 and holds no share.
    """
    weak = values < threshold
    total = float(values.sum(dtype=np.float64))
    return weak, float(values[weak].sum(dtype=np.float64)) / total if total else 0.0


def row_entropy(
    weights: Float[ndarray, "layer head query key"], mask: Bool[ndarray, "layer query key"], unit: Unit
) -> tuple[Float[ndarray, "layer head query"], Float[ndarray, "layer query"]]:
    """Returns the Shannon entropy of every row, and the largest that it could have, both in float64.

    It is -sum of w log w: 0 for a single key, NaN where a row sees nothing; the largest is the log of allowed keys.
    """
    base = 1.0 if unit == "nats" else np.log(2.0)
    allowed = mask.sum(axis=-1)
    return attention_entropy(weights) / base, np.log(np.maximum(allowed, 1)) / base
