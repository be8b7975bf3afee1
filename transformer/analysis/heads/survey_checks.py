"""Checks of a head survey: its numbers counted again by loops over queries and keys, one pair to a pass.

A survey of many pairs is checked in two steps: over the first pairs the loops give the same numbers, and one part of
all pairs, drawn at random, is measured again in batches of another size and put in the place of what was measured.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from random import randrange

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.survey import Survey, survey, survey_of, with_part
from transformer.analysis.heads.survey_reference import (
    Alone,
    counted,
    distances_by_rows,
    layer_entropy_by_pairs,
    one_by_one,
    undecided,
)
from transformer.model.kinds import AttentionKind
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer

LOOPED = 40
"""The number of pairs that are counted by loops."""
_OTHER_BATCH = 700
_TOLERANCE = 1e-4

Column = tuple[HeadAt, str]
"""A head and a column: a pattern, a pattern followed by " peak", " even" or " rows", entropy, ..."""


def check_survey(
    model: Transformer,
    sample: PairSample,
    tokenizer: Tokenizer,
    found: Survey,
    columns: Sequence[Column],
    shown: Sequence[float],
) -> Iterator[Check]:
    """Checks that each column of a survey of these pairs is what is shown; NaN where a head has no such place."""
    small, passes, first = _first(model, sample, tokenizer)
    wanted = [column for column in columns if not math.isnan(value_of(small, *column))]
    how = f"the first {first} pairs, each in a pass of its own, every query and key looked at in turn"
    claim = "Each share is the count of a loop over queries and keys"
    open_rows = {column: undecided(passes, *column) for column in wanted}
    if most := max(open_rows.values(), default=0.0):
        how += f"; in up to {100 * most:.2g} % of rows rounding decides whether weights are equal"
    looped = _but_for([*open_rows.values()], [counted(passes, *column) for column in wanted], _values(small, wanted))
    yield agree(claim, _values(small, wanted), looped, _TOLERANCE, how)
    free = [open_rows.get(column, 0.0) for column in columns]
    given = np.asarray(shown, dtype=float)
    yield _again(model, sample, tokenizer, found, given, lambda found: _but_for(free, _values(found, columns), given))


def check_similarity(
    model: Transformer,
    sample: PairSample,
    tokenizer: Tokenizer,
    found: Survey,
    kind: AttentionKind,
    groups: Sequence[Sequence[int]],
    closest: float,
    shown: Float[ndarray, "head head"],
) -> Iterator[Check]:
    """Checks the mean distances of a kind's heads, shown group by group, and that average linkage makes the groups."""
    small, passes, first = _first(model, sample, tokenizer)
    claim = "Distances are Jensen-Shannon distances, by two Kullback-Leibler divergences"
    how = f"the first {first} pairs, each in a pass of its own, row by row"
    yield agree(claim, small.distances[kind], distances_by_rows(passes, kind), _TOLERANCE, how)
    order = [head for group in groups for head in group]
    yield agree("Each head stands in one group", sorted(order), range(len(shown)), 0, "heads counted")
    yield _again(model, sample, tokenizer, found, shown, lambda found: found.distances[kind][np.ix_(order, order)])
    distances = np.empty_like(shown)
    distances[np.ix_(order, order)] = shown
    wanted = _linked(distances, closest)
    apart = len(set(map(tuple, groups)) ^ wanted)
    how = "mean distances between groups taken anew from all heads after each merger; groups that differ"
    yield Check("Groups merge up to the mean distance that you chose", float(apart), 0.0, how)


def check_entropy(
    model: Transformer,
    sample: PairSample,
    tokenizer: Tokenizer,
    found: Survey,
    of_heads: Float[ndarray, " head"],
    of_layers: Float[ndarray, "sublayer 3"],
    quantile: float,
) -> Iterator[Check]:
    """Checks the mean entropy of each head, and of each layer with its interval, which is its error times a quantile,
    and the entropy of a uniform head."""
    small, passes, first = _first(model, sample, tokenizer)

    def values(found: Survey) -> Float[ndarray, " value"]:
        layers = np.concatenate(list(found.layer_entropy.values())) * (1, quantile, 1)
        return np.concatenate(([profile.entropy for profile in found.profiles], layers.ravel()))

    heads = [counted(passes, profile.at, "entropy") for profile in small.profiles]
    layers = [layer_entropy_by_pairs(passes, kind) * (1, quantile, 1) for kind in small.layer_entropy]
    claim = "Entropies and their intervals are those of a loop over pairs"
    how = f"the first {first} pairs, each in a pass of its own, row by row"
    yield agree(claim, values(small), np.concatenate((heads, np.ravel(np.concatenate(layers)))), _TOLERANCE, how)
    yield _again(model, sample, tokenizer, found, np.concatenate((of_heads, of_layers.ravel())), values)


def drawn_part(found: Survey, sample: PairSample) -> tuple[int, tuple[Pair, ...], str]:
    """Draws a part of a survey at random; returns its number, its pairs, and in words which they are."""
    total, ends = len(sample.pairs), np.cumsum(found.sums["pairs"]).astype(int)
    part = randrange(len(ends))
    first, end = int(ends[part - 1]) if part else 0, int(ends[part])
    said = f"{total:,} pairs" if len(ends) == 1 else f"pairs {first + 1:,} to {end:,} of {total:,}, drawn at random,"
    return part, sample.pairs[first:end], said


def value_of(found: Survey, at: HeadAt, name: str) -> float:
    """Returns one head's number in a column of a survey; NaN where it has none."""
    profile = found.by_head[at]
    match name:
        case "entropy" | "largest" | "evenness":
            return getattr(profile, name)
        case "error_rate" | "accuracy":
            return getattr(profile.written, name) if profile.written else math.nan
        case "error_rate_read" | "accuracy_read":
            return getattr(profile.read, name.removesuffix("_read")) if profile.read else math.nan
    pattern, _, what = name.partition(" ")
    values = {
        "": profile.weight,
        "peak": profile.peak,
        "even": found.even[at.kind],
        "rows": found.rows[at.kind],
    }[what]
    return {**values}.get(pattern, math.nan)  # type: ignore[call-overload]


def _first(model: Transformer, sample: PairSample, tokenizer: Tokenizer) -> tuple[Survey, tuple[Alone, ...], int]:
    """Surveys the first pairs, and reads each of them in a pass of its own."""
    first = list(sample.pairs[:LOOPED])
    unit = sample.unit
    return survey(model, first, tokenizer, unit=unit), one_by_one(model, first, tokenizer, unit), len(first)


def _again(
    model: Transformer,
    sample: PairSample,
    tokenizer: Tokenizer,
    found: Survey,
    shown: Float[ndarray, "..."],
    values: Callable[[Survey], ndarray],
) -> Check:
    part, pairs, which = drawn_part(found, sample)
    again = survey(model, pairs, tokenizer, unit=sample.unit, batch_tokens=_OTHER_BATCH)
    whole = survey_of(model, with_part(found.sums, part, again.sums))
    how, n = f"{which} read again, in smaller batches", len(found.sums["pairs"])
    claim = "Over all pairs the same numbers come out again" if n == 1 else "Measuring a part again changes no number"
    return agree(claim, shown, values(whole), 1e-3 / n, how)  # as exact as the part itself


def _but_for(
    free: Sequence[float], values: Float[ndarray, " column"] | Sequence[float], shown: Float[ndarray, " column"]
) -> Float[ndarray, " column"]:
    """Returns values, each moved towards what is shown by as much as the rows that rounding decides could move it."""
    given, most = np.asarray(values, dtype=float), np.asarray(free)
    return np.where(np.isnan(shown), given, given + np.clip(shown - given, -most, most))


def _values(found: Survey, columns: Sequence[Column]) -> Float[ndarray, " column"]:
    return np.array([value_of(found, *column) for column in columns], dtype=float)


def _linked(distances: Float[ndarray, "head head"], closest: float) -> set[tuple[int, ...]]:
    """Returns the groups of average linkage, every mean taken over the heads themselves."""
    groups: list[tuple[int, ...]] = [(head,) for head in range(len(distances))]
    while len(groups) > 1:
        means = {
            (a, b): math.fsum(float(distances[i, j]) for i in a for j in b) / (len(a) * len(b))
            for a, b in combinations(groups, 2)
        }
        a, b = min(means, key=lambda pair: means[pair])
        if means[a, b] > closest:
            break
        groups = [*(group for group in groups if group not in (a, b)), tuple(sorted(a + b))]
    return set(groups)
