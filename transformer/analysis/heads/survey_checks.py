"""Proofs of what heads do: their numbers counted again by loops over queries and keys, one pair to a pass.

A survey over many pairs is proved in two steps: over the first pairs it is what the loops give, and over all of them it
comes out again in batches of another size.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.survey import Survey, survey
from transformer.analysis.heads.survey_reference import counted, distances_by_rows, one_by_one
from transformer.data.tasks import AlignmentUnit
from transformer.model.kinds import AttentionKind
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer

LOOPED = 40
"""Pairs that are counted by loops."""
_OTHER_BATCH = 700
_TOLERANCE = 1e-4

Column = tuple[HeadAt, str]
"""A head, and what is counted of it: a pattern, a pattern with " peak" or " even" behind it, entropy, error_rate..."""


def check_survey(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    found: Survey,
    columns: Sequence[Column],
    *,
    unit: AlignmentUnit,
) -> Iterator[Check]:
    """That these columns of a survey over these pairs are what looking at each query and key gives."""
    first = list(pairs[:LOOPED])
    small, passes = survey(model, first, tokenizer, unit=unit), one_by_one(model, first, tokenizer, unit)
    wanted = [column for column in columns if _value(small, column) is not None]
    how = f"the first {len(first)} pairs, each in a pass of its own, every query and key looked at in turn"
    claim = "Each share is what a loop over queries and keys counts"
    yield agree(claim, _values(small, wanted), [counted(passes, *column) for column in wanted], _TOLERANCE, how)
    yield _again(model, pairs, tokenizer, found, partial(_values, columns=columns), unit)


def check_likeness_of_heads(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    found: Survey,
    kind: AttentionKind,
    groups: Sequence[Sequence[int]],
    closest: float,
    *,
    unit: AlignmentUnit,
) -> Iterator[Check]:
    """That these are the mean distances of a kind's heads, and that groups of them are closer than that to nobody."""
    first = list(pairs[:LOOPED])
    small, passes = survey(model, first, tokenizer, unit=unit), one_by_one(model, first, tokenizer, unit)
    claim = "Distances are Jensen-Shannon distances, by two Kullback-Leibler divergences"
    how = f"the first {len(first)} pairs, each in a pass of its own, row by row"
    yield agree(claim, small.distances[kind], distances_by_rows(passes, kind), _TOLERANCE, how)
    yield _again(model, pairs, tokenizer, found, lambda survey: survey.distances[kind], unit)
    between = [_apart(found.distances[kind], a, b) for a, b in combinations(groups, 2)]
    yield Check(
        "No two groups are as close as what you chose",
        max((closest - distance for distance in between), default=0.0),
        0.0,
        f"mean distances of {len(between)} pairs of groups, summed again; by how much the nearest is too close",
    )


def _again(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    found: Survey,
    values: Callable[[Survey], ndarray],
    unit: AlignmentUnit,
) -> Check:
    again = survey(model, pairs, tokenizer, unit=unit, batch_tokens=_OTHER_BATCH)
    how = f"{len(pairs):,} pairs read again, in smaller batches"
    return agree("Over all pairs the same numbers come out again", values(found), values(again), 1e-3, how)


def _values(found: Survey, columns: Sequence[Column]) -> Float[ndarray, "column"]:
    return np.array([np.nan if (value := _value(found, column)) is None else value for column in columns], dtype=float)


def _value(found: Survey, column: Column) -> float | None:
    """What a survey says of a head."""
    at, name = column
    profile = found.by_head[at]
    match name:
        case "entropy" | "largest" | "evenness":
            return getattr(profile, name)
        case "error_rate" | "accuracy":
            return profile.written and getattr(profile.written, name)
        case "error_rate_read":
            return profile.read and profile.read.error_rate
        case _ if name.endswith(" even"):
            return {**found.even[at.kind]}.get(name.removesuffix(" even"))  # type: ignore[call-overload]
        case _ if name.endswith(" peak"):
            return {**profile.peak}.get(name.removesuffix(" peak"))  # type: ignore[call-overload]
    return {**profile.weight}.get(name)  # type: ignore[call-overload]


def _apart(distances: Float[ndarray, "head head"], a: Sequence[int], b: Sequence[int]) -> float:
    return math.fsum(float(distances[i, j]) for i in a for j in b) / (len(a) * len(b))
