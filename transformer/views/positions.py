"""The figures of position tables: the tables themselves, single dimensions, and how similar positions are."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame
from safetensors.numpy import load_file

from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.checks import (
    check_offsets,
    check_similarity,
    check_sinusoids,
)
from transformer.analysis.positions.tables import (
    Matrix,
    OffsetProfile,
    Similarity,
    by_offset,
    concatenated,
    similarity,
    sinusoids,
    wavelengths,
)
from transformer.figures.positions.tables import (
    dimensions_figure,
    matrices_figure,
    offsets_figure,
    tables_figure,
)
from transformer.figures.tables import column_table, matrix_table
from transformer.lab import Lab
from transformer.runs.position_moments import LearnedTable, Rows, table_at_start

Layout = Literal["interleaved", "concatenated"]
QUANTITIES: dict[Similarity, str] = {"cosine": "cosine", "dot": "dot product"}


@dataclass(frozen=True, kw_only=True)
class TablePair:
    """The size of a sinusoidal table, and how many rows of a learned one stand beside it."""

    d_model: int
    length: int
    base: int = 10_000

    def pair(self, lab: Lab, learned: LearnedTable | None, *, reached: bool = False) -> dict[str, Rows]:
        """Returns each table under its title; of the learned one, the rows that training `reached` or all in view."""
        title = f"sinusoidal: {self.length} × {self.d_model}, base {self.base:,}"
        found = {title: sinusoids(self.length, self.d_model, self.base)}
        if learned is not None:
            when = {"trained": "trained", "start": "before training"}.get(learned.moment, f"step {learned.moment}")
            rows = min(self.length, learned.trained) if reached else self.length
            found[f"learned: {lab.name}, {learned.stack}, {when}"] = learned.rows[:rows]
        return found


@dataclass(frozen=True)
class TablesData:
    """Position tables side by side."""

    titles: tuple[str, ...]
    tables: tuple[Rows, ...]
    """The sinusoidal one, then the learned one where there is one."""
    untrained_from: int | None
    """The first row of the learned table that training never reached."""


@dataclass(frozen=True, kw_only=True)
class PositionTables(TablePair):
    """The sinusoidal table, beside a learned one."""

    layout: Layout = "interleaved"
    name = "positions"
    explained = (
        "Each row is the vector that is added to the embedding of the token at that position; columns are its "
        "dimensions. The sinusoids follow a formula, from fast waves on the left to slow ones on the right. A learned "
        "table starts as noise, and its rows are trained like any weight. Both tables share one scale around 0."
    )

    def data(self, lab: Lab, learned: LearnedTable | None) -> TablesData:
        """The rows that are added to the embeddings at each position."""
        found = self.pair(lab, learned)
        sinusoidal, *others = found.values()
        if self.layout == "concatenated":
            sinusoidal = concatenated(sinusoidal)
        return TablesData(tuple(found), (sinusoidal, *others), None if learned is None else learned.trained)

    def figure(self, data: TablesData, *, dark: bool = False) -> go.Figure:
        """The tables on one scale around 0."""
        ends = [None, data.untrained_from][: len(data.tables)]
        return tables_figure(data.tables, data.titles, untrained_from=ends, dark=dark)

    def tables(self, data: TablesData) -> tuple[DataFrame, ...]:
        return matrix_tables(data.titles, data.tables, ("position", "dimension"))

    def checks(self, lab: Lab, learned: LearnedTable | None, data: TablesData) -> Iterator[Check]:
        """Computes the formula entry by entry, and reads the learned rows again."""
        half = (self.d_model + 1) // 2
        order = range(self.d_model)
        if self.layout == "concatenated":
            order = [i // 2 if i % 2 == 0 else half + i // 2 for i in range(self.d_model)]
        yield from check_sinusoids(data.tables[0][:, list(order)], self.base)
        if learned is not None:
            again, how = _read_again(lab, learned)
            yield agree("The learned rows are the model's", data.tables[1], again[: self.length], 0, how)
            start, end = table_at_start(lab.checkpoint, learned.stack), _trained_rows(lab, learned)
            rows = (pos for pos in range(len(end)) if end[pos].tolist() == start[pos].tolist())
            how = "rows on disk compared with those that the seed gives"
            claim = "Training reached the rows before the dotted line"
            yield agree(claim, data.untrained_from, next(rows, len(end)), 0, how)


@dataclass(frozen=True)
class DimensionsData:
    """One pair of dimensions of each table, over positions."""

    labels: tuple[str, ...]
    curves: tuple[Float[ndarray, " position"], ...]
    first: int
    """The even dimension of the pair."""
    wavelength: float
    """Positions after which the pair repeats."""
    shortest: float
    longest: float


@dataclass(frozen=True, kw_only=True)
class PositionDimensions(TablePair):
    """One pair of dimensions as curves, sine and cosine."""

    explained = (
        "One wave of the table: two of its columns, drawn over the positions. In the sinusoidal table they are a sine "
        "and a cosine of the same wavelength, so together they tell where in the wave a position is, like the hand of "
        "a clock. A learned table has no such rule: its rows are what training made of random numbers."
    )

    frequency: int
    """The number of the pair, from 0 (the shortest wave); the last pair where it is too high."""

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        return f"positions-dimensions-{2 * self._pair}"

    @property
    def _pair(self) -> int:
        return min(self.frequency, self.d_model // 2 - 1)

    def data(self, lab: Lab, learned: LearnedTable | None) -> DimensionsData:
        """Both columns of each table, and their wavelength."""
        sinusoidal, *others = self.pair(lab, learned).values()
        first = 2 * self._pair
        labels = [f"sinusoidal, dimension {first} (sine)", f"sinusoidal, dimension {first + 1} (cosine)"]
        curves = [sinusoidal[:, first], sinusoidal[:, first + 1]]
        for table in others:
            columns = [i for i in (first, first + 1) if i < table.shape[1]]
            labels += [f"learned, dimension {i}" for i in columns]
            curves += [table[:, i] for i in columns]
        waves = wavelengths(self.d_model, self.base)
        found = (float(waves[i]) for i in (self._pair, 0, -1))
        return DimensionsData(tuple(labels), tuple(curves), first, *found)

    def figure(self, data: DimensionsData, *, dark: bool = False) -> go.Figure:
        """A line for each dimension."""
        return dimensions_figure(data.curves, data.labels, dark=dark)

    def tables(self, data: DimensionsData) -> tuple[DataFrame, ...]:
        """The value at each position."""
        return tuple(
            column_table(label, [f"position {i}" for i in range(len(curve))], {"value": curve})
            for label, curve in zip(data.labels, data.curves, strict=True)
        )

    def checks(self, lab: Lab, learned: LearnedTable | None, data: DimensionsData) -> Iterator[Check]:
        """Follows both waves by their formula, and reads the learned columns again."""
        pair = min(self.frequency, (self.d_model - 2) // 2)
        yield agree("The pair is the one that was asked for", data.first, 2 * pair, 0, "counted")
        rate = self.base ** (-2 * pair / self.d_model)
        waves = [[f(position * rate) for position in range(self.length)] for f in (math.sin, math.cos)]
        how = f"{2 * self.length} values computed one by one"
        yield agree("The waves are sin and cos of pos / base^(2i/d)", data.curves[:2], waves, 1e-4, how)
        ends = (0, self.d_model // 2 - 1)
        again = [2 * math.pi * self.base ** (2 * i / self.d_model) for i in (pair, *ends)]
        shown = (data.wavelength, data.shortest, data.longest)
        yield agree("Wavelengths are 2π · base^(2i/d)", shown, again, 1e-9 * max(again), "three of them computed again")
        if learned is not None:
            again, how = _read_again(lab, learned)
            columns = again[: self.length, data.first : data.first + 2].T
            shown = np.array(data.curves[2:]).reshape(columns.shape)
            yield agree("The learned columns are the model's", shown, columns, 0, how)


@dataclass(frozen=True)
class MatricesData:
    """A matrix for each table."""

    titles: tuple[str, ...]
    matrices: tuple[Matrix, ...]

    def tables(self, axes: tuple[str, str]) -> tuple[DataFrame, ...]:
        """Returns the matrices, rows and columns counted along these axes."""
        return matrix_tables(self.titles, self.matrices, axes)


@dataclass(frozen=True, kw_only=True)
class PositionSimilarity(TablePair):
    """The cosine or dot product of any two positions."""

    measure: Similarity
    name = "positions-{measure}"
    explained = (
        "How alike the rows of two positions are: each cell compares the position of its row with that of its column. "
        "The sinusoidal table depends on their distance alone, so every diagonal has one colour, and neighbours are "
        "most alike. A learned table shows what training made of it."
    )

    def data(self, lab: Lab, learned: LearnedTable | None) -> MatricesData:
        """The similarity of each pair of rows."""
        found = self.pair(lab, learned)
        return MatricesData(tuple(found), tuple(similarity(table, self.measure) for table in found.values()))

    def figure(self, data: MatricesData, *, dark: bool = False) -> go.Figure:
        """A matrix for each table."""
        return matrices_figure(data.matrices, data.titles, dark=dark)

    def tables(self, data: MatricesData) -> tuple[DataFrame, ...]:
        return data.tables(("position", "position"))

    def checks(self, lab: Lab, learned: LearnedTable | None, data: MatricesData) -> Iterator[Check]:
        """Computes every product again."""
        for (title, table), matrix in zip(self.pair(lab, learned).items(), data.matrices, strict=True):
            yield from _named(title, check_similarity(table, matrix, self.measure))


@dataclass(frozen=True)
class OffsetData:
    """The similarity in each table by the offset of two positions."""

    titles: tuple[str, ...]
    profiles: tuple[OffsetProfile, ...]


@dataclass(frozen=True, kw_only=True)
class SimilarityByOffset(TablePair):
    """The similarity of two positions against the offset between them."""

    measure: Similarity
    name = "positions-{measure}-by-offset"
    explained = (
        "The same similarities, by distance: how alike are two positions that are so many apart? The line is the mean "
        "over all such pairs; the band reaches from the least to the most alike. The sinusoidal table has no band, "
        "because the distance alone decides."
    )

    def data(self, lab: Lab, learned: LearnedTable | None) -> OffsetData:
        """The mean, the lowest and the highest similarity at each offset."""
        found = self.pair(lab, learned)
        profiles = (by_offset(similarity(table, self.measure)) for table in found.values())
        return OffsetData(tuple(found), tuple(profiles))

    def figure(self, data: OffsetData, *, dark: bool = False) -> go.Figure:
        """A line and a band for each table."""
        means, lows, highs = zip(*((p.mean, p.low, p.high) for p in data.profiles), strict=True)
        return offsets_figure(means, lows, highs, data.titles, quantity=QUANTITIES[self.measure], dark=dark)

    def tables(self, data: OffsetData) -> tuple[DataFrame, ...]:
        """Mean, lowest and highest at each offset."""
        return tuple(
            column_table(title, [f"offset {i}" for i in p.offset], {"mean": p.mean, "lowest": p.low, "highest": p.high})
            for title, p in zip(data.titles, data.profiles, strict=True)
        )

    def checks(self, lab: Lab, learned: LearnedTable | None, data: OffsetData) -> Iterator[Check]:
        """Takes every pair of positions again, offset by offset."""
        for (title, table), profile in zip(self.pair(lab, learned).items(), data.profiles, strict=True):
            yield from _named(title, check_offsets(table, profile, self.measure))


def _trained_rows(lab: Lab, learned: LearnedTable) -> Rows:
    """Reads the trained table from the file of weights."""
    return load_file(lab.checkpoint.weights_file)[f"{learned.stack}.embedding.positions.table"].astype(np.float32)


def _read_again(lab: Lab, learned: LearnedTable) -> tuple[Rows, str]:
    """Returns the learned table as its file holds it, or as the seed gives it, and how it was found."""
    match learned.moment:
        case "trained":
            return _trained_rows(lab, learned), f"read from {lab.checkpoint.weights_file.name}"
        case "start":
            return table_at_start(lab.checkpoint, learned.stack), "weights drawn again from the seed"
    step, folder = int(learned.moment), lab.checkpoint.folder
    files = {int(p.stem): p for p in (folder / "snapshots").glob("*.safetensors") if p.stem.isdecimal()}
    if snapshot := files.get(step):
        rows = load_file(snapshot)[f"{learned.stack}.embedding.positions.table"].astype(np.float32)
        return rows, f"read from {snapshot.name}"
    kept = load_file(folder / "positions.safetensors")
    changed = kept[learned.stack][kept["steps"].tolist().index(step)].astype(np.float32)
    return np.concatenate((changed, _trained_rows(lab, learned)[len(changed) :])), "read from positions.safetensors"


def matrix_tables(
    titles: Iterable[str], values: Iterable[Float[ndarray, "row column"]], axes: tuple[str, str]
) -> tuple[DataFrame, ...]:
    return tuple(
        matrix_table(
            title, matrix, *([f"{axis} {i}" for i in range(n)] for axis, n in zip(axes, matrix.shape, strict=True))
        )
        for title, matrix in zip(titles, values, strict=True)
    )


def _named(title: str, checks: Iterable[Check]) -> Iterator[Check]:
    """Returns the checks with the table's title before each claim."""
    return (replace(check, claim=f"{title}: {check.claim[:1].lower()}{check.claim[1:]}") for check in checks)
