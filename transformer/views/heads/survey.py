"""The attention of heads over many pairs: a map of all heads, a table, one head's profile, and similar heads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check
from transformer.analysis.heads.addresses import HeadAt, sublayers_of
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.similarity import group_similar
from transformer.analysis.heads.survey import Profile, Survey
from transformer.analysis.heads.survey_checks import check_similarity, check_survey, value_of
from transformer.figures.heads.bars import profile_bars
from transformer.figures.heads.labels import COLUMN_NAMES, SHORT_NAMES, Sublayer, head_name, looked_at
from transformer.figures.heads.tables import column_map, head_map, similarity_map
from transformer.figures.tables import column_table, matrix_table
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName

Measure = Literal["weight", "peak"]
MEASURES: dict[Measure, str] = {"weight": "mean weight", "peak": "share of rows with their largest weight there"}
OTHER_COLUMNS = ("entropy", "largest", "error_rate", "accuracy", "error_rate_read")
"""Columns that are no patterns."""
_SPREAD = ("entropy", "evenness", "largest")
_ALIGNMENT = ("accuracy", "error_rate", "accuracy_read", "error_rate_read")


@dataclass(frozen=True)
class MapData:
    """A number for each head, blocks of attention being rows."""

    values: Float[ndarray, "sublayer head"]
    """NaN where a head has none."""
    sublayers: tuple[str, ...]
    """The address of each row, as in "decoder.1.cross"."""
    notes: tuple[tuple[str, ...], ...] = ()
    """A line for each head under its number."""

    def heads(self) -> tuple[str, ...]:
        """Returns the addresses of the heads, row by row."""
        return tuple(f"{row}.{head}" for row in self.sublayers for head in range(self.values.shape[1]))

    def table(self, name: str) -> DataFrame:
        rows = [Sublayer.of(row).name for row in self.sublayers]
        return matrix_table(name, self.values, rows, [f"head {head}" for head in range(self.values.shape[1])])

    def place(self, head: str) -> tuple[int, int] | None:
        """Returns the row and column of a head's address; None for an empty one."""
        sublayer, _, number = head.rpartition(".")
        return (self.sublayers.index(sublayer), int(number)) if head else None


def on_map(lab: Lab, values: dict[HeadAt, float], notes: dict[HeadAt, str] | None = None) -> MapData:
    """Returns the heads of a model with their values."""
    rows = sublayers_of(lab.model)
    numbers = np.array([[values.get(at, np.nan) for at in row] for row in rows], dtype=float)
    sublayers = tuple(str(row[0]).rpartition(".")[0] for row in rows)
    said = () if notes is None else tuple(tuple(notes.get(at, "") for at in row) for row in rows)
    return MapData(numbers, sublayers, said)


@dataclass(frozen=True, kw_only=True)
class PatternMap:
    """The share of each head's attention on one kind of place, or another column of the survey."""

    column: str
    measure: Measure = "weight"
    chosen: str = ""
    """The address of the head that is framed."""
    name = "heads-{column}"

    def data(self, lab: Lab, sample: PairSample, found: Survey) -> MapData:
        """The column of every head."""
        name = self._column
        values = {profile.at: value_of(found, profile.at, name) for profile in found.profiles}
        return on_map(lab, values, {profile.at: main_patterns_text(found, profile) for profile in found.profiles})

    def figure(self, data: MapData, *, dark: bool = False) -> go.Figure:
        """The map; a selected point's x is the head, its y the row."""
        top = float(np.nanmax(data.values, initial=0.0)) or 1.0 if self.column == "entropy" else 1.0
        title = COLUMN_NAMES[self.column]
        hover = [
            [
                f"{title}: {'none' if np.isnan(value) else f'{value:.3g}'}<br>{note}"
                for value, note in zip(*line, strict=True)
            ]
            for line in zip(data.values.tolist(), data.notes, strict=True)
        ]
        quantity = title if self.column in OTHER_COLUMNS else MEASURES[self.measure].split(" with")[0]
        blocks = [Sublayer.of(row) for row in data.sublayers]
        chosen = data.place(self.chosen)
        return head_map(data.values, blocks, hover, quantity=quantity, limits=(0.0, top), chosen=chosen, dark=dark)

    def tables(self, data: MapData) -> tuple[DataFrame, ...]:
        return (data.table(COLUMN_NAMES[self.column]),)

    def checks(self, lab: Lab, sample: PairSample, found: Survey, data: MapData) -> Iterator[Check]:
        """Counts the column again by loops."""
        columns = [(HeadAt.parse(head), self._column) for head in data.heads()]
        yield from check_survey(lab.model, sample, lab.tokenizer, found, columns, data.values.ravel().tolist())

    @property
    def _column(self) -> str:
        return _measured(self.column, self.measure)


@dataclass(frozen=True)
class PatternTableData:
    """Columns of the survey for some heads; NaN where a head has no such place."""

    heads: tuple[str, ...]
    columns: tuple[str, ...]
    values: Float[ndarray, "head column"]
    other: Float[ndarray, "head column"]
    """The other measure of patterns."""
    even: Float[ndarray, "head column"]
    """The mean weight of a head that looks at all tokens alike."""
    rows: Float[ndarray, "head column"]
    """Rows that have such a place."""
    patterns: tuple[str, ...]
    """The pattern with most of each head's weight, in words."""
    clear: tuple[str, ...]
    """The heads with more than half of their weight there."""


@dataclass(frozen=True, kw_only=True)
class PatternTable:
    """Columns of the survey, a row for each head."""

    columns: tuple[str, ...]
    measure: Measure = "weight"
    heads: Literal["all", "encoder_self", "decoder_self", "cross"] = "all"
    name = "heads-table"
    explained = (
        "A row for each head: how much of its attention falls on each kind of place, on average over many sentences. "
        "The small bar repeats the number; its tick is what a head gets that looks at all tokens alike. A head has a "
        "habit where the bar is far beyond the tick."
    )

    def data(self, lab: Lab, sample: PairSample, found: Survey) -> PatternTableData:
        """The columns of these heads."""
        profiles = [p for p in found.profiles if self.heads in ("all", p.at.kind)]

        def column(names: Sequence[str]) -> Float[ndarray, "head column"]:
            return np.array([[value_of(found, p.at, name) if name else np.nan for name in names] for p in profiles])

        other: Measure = "peak" if self.measure == "weight" else "weight"
        return PatternTableData(
            heads=tuple(str(profile.at) for profile in profiles),
            columns=self.columns,
            values=column([_measured(name, self.measure) for name in self.columns]),
            other=column(self._beside(other)),
            even=column(self._beside("even")),
            rows=column(self._beside("rows")),
            patterns=tuple(main_patterns_text(found, profile) for profile in profiles),
            clear=tuple(str(profile.at) for profile in profiles if found.main_patterns(profile).clear),
        )

    def figure(self, data: PatternTableData, *, dark: bool = False) -> go.Figure:
        """The table with shaded cells."""
        columns = [SHORT_NAMES[name] for name in data.columns]
        return column_map(
            data.values, data.heads, columns, quantity=MEASURES[self.measure].split(" with")[0], dark=dark
        )

    def tables(self, data: PatternTableData) -> tuple[DataFrame, ...]:
        """The table, and the numbers beside its own."""
        rows, columns = [head_name(head) for head in data.heads], [COLUMN_NAMES[name] for name in data.columns]
        other = MEASURES["peak" if self.measure == "weight" else "weight"]
        arrays = {MEASURES[self.measure]: data.values, other: data.other, "even head": data.even, "rows": data.rows}
        return tuple(matrix_table(name, array, rows, columns) for name, array in arrays.items())

    def checks(self, lab: Lab, sample: PairSample, found: Survey, data: PatternTableData) -> Iterator[Check]:
        """Counts every column again by loops."""
        other: Measure = "peak" if self.measure == "weight" else "weight"
        names = [[_measured(name, self.measure) for name in self.columns]]
        names += [self._beside(what) for what in (other, "even", "rows")]
        arrays = (data.values, data.other, data.even, data.rows)
        columns, shown = [], []
        for row, head in enumerate(data.heads):
            for own, array in zip(names, arrays, strict=True):
                pairs = [(name, value) for name, value in zip(own, array[row].tolist(), strict=True) if name]
                columns += [(HeadAt.parse(head), name) for name, _ in pairs]
                shown += [value for _, value in pairs]
        yield from check_survey(lab.model, sample, lab.tokenizer, found, columns, shown)
        empty = [np.count_nonzero(~np.isnan(a[:, [not n for n in own]])) for own, a in zip(names, arrays, strict=True)]
        yield Check("Columns that are no patterns have no further numbers", float(sum(empty)), 0.0, "cells counted")

    def _beside(self, what: str) -> list[str]:
        """Returns the columns in another measure; empty for those that are no patterns."""
        return ["" if name in OTHER_COLUMNS else _measured(name, what) for name in self.columns]


@dataclass(frozen=True)
class ProfileData:
    """The distribution of one head's weight over patterns."""

    patterns: tuple[str, ...]
    weight: Float[ndarray, " pattern"]
    peak: Float[ndarray, " pattern"]
    even: Float[ndarray, " pattern"]
    rows: Float[ndarray, " pattern"]
    spread: Float[ndarray, "3"]
    """Mean entropy, evenness and largest weight of the rows."""
    alignment: Float[ndarray, "4"]
    """Accuracy and error rate of the rows that write a word, then of those that read it; NaN without gold links."""


@dataclass(frozen=True, kw_only=True)
class HeadProfile:
    """The mean weight of one head on each kind of place, beside that of a head that looks at all tokens alike."""

    head: str
    """Its address, as in "decoder.1.cross.2"."""
    name = "{head}"
    explained = (
        "Where one head looks, on average over many sentences: each bar is the mean weight on one kind of place. A "
        "place can be of several kinds (the first token may be punctuation too), so the bars need not add up to 1. The "
        "ticks are a head that looks at all tokens alike: only what lies beyond them is a habit of this head."
    )

    def data(self, lab: Lab, sample: PairSample, found: Survey) -> ProfileData:
        """The mean weights and all other numbers of the head."""
        at = HeadAt.parse(self.head)
        if at not in found.by_head:
            raise ValueError(f"there is no head {self.head}")
        patterns = tuple(found.by_head[at].weight)

        def values(names: Sequence[str]) -> Float[ndarray, " name"]:
            return np.array([value_of(found, at, name) for name in names], dtype=float)

        weight, peak, even, rows = (values(names) for names in _profile_columns(patterns))
        return ProfileData(patterns, weight, peak, even, rows, values(_SPREAD), values(_ALIGNMENT))

    def figure(self, data: ProfileData, *, dark: bool = False) -> go.Figure:
        """The mean weights as bars with ticks."""
        kind = HeadAt.parse(self.head).kind
        titles = [looked_at(name, kind) for name in data.patterns]
        return profile_bars(data.weight.tolist(), data.even.tolist(), titles, kind=kind, dark=dark)

    def tables(self, data: ProfileData) -> tuple[DataFrame, ...]:
        """The bars, then the numbers of whole rows."""
        bars = {
            "mean weight": data.weight,
            "an even head": data.even,
            "share of largest weights": data.peak,
            "rows": data.rows,
        }
        others = np.array([[*data.spread, *data.alignment]])
        return (
            column_table("by place", data.patterns, bars),
            matrix_table("rows as a whole", others, [head_name(self.head)], [*_SPREAD, *_ALIGNMENT]),
        )

    def checks(self, lab: Lab, sample: PairSample, found: Survey, data: ProfileData) -> Iterator[Check]:
        """Counts each number again by loops."""
        at = HeadAt.parse(self.head)
        names = [*chain(*_profile_columns(data.patterns)), *_SPREAD, *_ALIGNMENT]
        shown = np.concatenate([data.weight, data.peak, data.even, data.rows, data.spread, data.alignment])
        columns = [(at, name) for name in names]
        yield from check_survey(lab.model, sample, lab.tokenizer, found, columns, shown.tolist())


@dataclass(frozen=True)
class SimilarityData:
    """The distances of the heads of a kind, group by group."""

    heads: tuple[str, ...]
    distances: Float[ndarray, "head head"]
    groups: tuple[tuple[int, ...], ...]
    """The heads of each group, counted layer by layer from 0."""


@dataclass(frozen=True, kw_only=True)
class HeadSimilarity:
    """The distance between the weights of every two heads of a kind, and groups of heads that are close."""

    kind: KindName
    closest: float
    """The mean distance up to which groups become one."""
    name = "{kind}-similarity"

    def data(self, lab: Lab, sample: PairSample, found: Survey) -> SimilarityData:
        """The mean Jensen-Shannon distances, and the groups of average linkage."""
        distances, profiles = found.distances[AttentionKind(self.kind)], found.of_kind(AttentionKind(self.kind))
        groups = group_similar(distances, self.closest)
        order = [head for group in groups for head in group]
        heads = tuple(str(profiles[head].at) for head in order)
        return SimilarityData(heads, distances[np.ix_(order, order)], groups)

    def figure(self, data: SimilarityData, *, dark: bool = False) -> go.Figure:
        """The distances as cells, groups framed."""
        sizes = [len(group) for group in data.groups]
        return similarity_map(data.distances, self._names(data), kind=self.kind, sizes=sizes, dark=dark)

    def tables(self, data: SimilarityData) -> tuple[DataFrame, ...]:
        names = [head_name(head) for head in data.heads]
        return (matrix_table("distance", data.distances, names, names),)

    def checks(self, lab: Lab, sample: PairSample, found: Survey, data: SimilarityData) -> Iterator[Check]:
        """Takes the distances row by row, and the groups from all heads at each merger."""
        kind = AttentionKind(self.kind)
        args = lab.model, sample, lab.tokenizer, found, kind, data.groups, self.closest, data.distances
        yield from check_similarity(*args)

    @staticmethod
    def _names(data: SimilarityData) -> list[str]:
        found = [HeadAt.parse(head) for head in data.heads]
        return [f"{at.layer}·{at.head}" for at in found]


def main_patterns_text(found: Survey, profile: Profile) -> str:
    """Returns the pattern that a head is named after, in a few words: "the previous token", or "itself (mixed)"."""
    main = found.main_patterns(profile)
    named = " and ".join(looked_at(pattern, profile.at.kind) for pattern in main.patterns)
    if not named:
        return "spread"
    return named if main.clear else f"{named} (mixed)"


def _profile_columns(patterns: Sequence[str]) -> tuple[list[str], ...]:
    return tuple([_measured(name, what) for name in patterns] for what in ("weight", "peak", "even", "rows"))


def _measured(column: str, what: str) -> str:
    """Returns the survey's name of a column in a measure."""
    return column if column in OTHER_COLUMNS or what == "weight" else f"{column} {what}"
