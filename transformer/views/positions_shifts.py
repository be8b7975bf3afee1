"""The figures of a shift by k positions: the rotation of the sinusoids, and the best linear map of each table."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.checks import check_fit, check_map, check_rotation, check_rotation_errors
from transformer.analysis.positions.tables import ShiftFit, fit_shift, rotation, shift_error
from transformer.figures.positions.tables import errors_figure, matrices_figure
from transformer.figures.tables import column_table, matrix_table
from transformer.lab import Lab
from transformer.runs.position_moments import LearnedTable, Rows
from transformer.views.positions import MatricesData, TablePair

MAP_AXES = ("dimension of PE(pos)", "dimension of PE(pos + k)")
ERROR_AXES = ("position pos", "largest error of a dimension")
FIT_PAIRS = 8
"""Pairs of positions that a map is fitted to and tested on, at the least."""


@dataclass(frozen=True, kw_only=True)
class ShiftMaps(TablePair):
    """The matrix that turns PE(pos) into PE(pos + k), beside the best linear map of a learned table."""

    k: int
    name = "positions-shift-{k}"

    def data(self, lab: Lab, learned: LearnedTable | None) -> MatricesData:
        """The rotation and the fitted map; ValueError where too few pairs of positions are k apart."""
        fitted = _fitted_tables(self.pair(lab, learned, reached=True), self.k)
        maps = {f"the rotation for k = {self.k}": rotation(self.d_model, self.k, self.base)}
        if len(fitted) > 1:
            maps[f"best linear map of the learned table, k = {self.k}"] = fit_shift(fitted[1], self.k).matrix
        return MatricesData(tuple(maps), tuple(maps.values()))

    def figure(self, data: MatricesData, *, dark: bool = False) -> go.Figure:
        """The matrices on one scale."""
        return matrices_figure(data.matrices, data.titles, axes=MAP_AXES, dark=dark)

    def tables(self, data: MatricesData) -> tuple[DataFrame, ...]:
        return data.tables(("to dimension", "from dimension"))

    def checks(self, lab: Lab, learned: LearnedTable | None, data: MatricesData) -> Iterator[Check]:
        """Turns positions with the rotation, and tests that the fitted map is the best."""
        yield from check_rotation(data.matrices[0], self.length, self.k, self.base)
        fitted = _fitted_tables(self.pair(lab, learned, reached=True), self.k)
        for table, matrix in zip(fitted[1:], data.matrices[1:], strict=True):
            yield check_map(table, self.k, matrix, "learned")


@dataclass(frozen=True)
class ShiftErrorsData:
    """The distance of the rotation and the fitted maps from PE(pos + k)."""

    titles: tuple[str, ...]
    exact: Float[ndarray, " pair"]
    """The rotation's largest error of a dimension at each position of the sinusoidal table."""
    fits: tuple[ShiftFit, ...]
    """The best linear map of each table."""
    rows: int
    """Rows of each table that the maps use."""

    @property
    def curves(self) -> tuple[tuple[str, ndarray, ndarray], ...]:
        """The name, the positions and the errors of each line."""
        names = ("sinusoidal, fitted map, held out", "learned, fitted map, held out")
        fitted = ((name, f.held_out, f.error[f.held_out]) for name, f in zip(names, self.fits, strict=False))
        return (("sinusoidal, rotation", np.arange(len(self.exact)), self.exact), *fitted)


@dataclass(frozen=True, kw_only=True)
class ShiftErrors(TablePair):
    """The errors of the rotation and of the best linear maps, position by position."""

    k: int
    name = "positions-shift-{k}-errors"
    explained = (
        "How well a single matrix takes the row of a position to that of the position *k* further on. For sinusoids "
        "the rotation is exact up to rounding. For a learned table the best matrix is fitted to half of the positions; "
        "the other half shows whether it holds for positions that it was not fitted to."
    )

    def data(self, lab: Lab, learned: LearnedTable | None) -> ShiftErrorsData:
        """Each map's errors; ValueError where too few pairs of positions are k apart."""
        found = self.pair(lab, learned, reached=True)
        fitted = _fitted_tables(found, self.k)
        sinusoidal = next(iter(found.values()))
        exact = shift_error(sinusoidal, rotation(self.d_model, self.k, self.base), self.k)
        fits = tuple(fit_shift(table, self.k) for table in fitted)
        return ShiftErrorsData(tuple(found), exact, fits, len(fitted[0]))

    def figure(self, data: ShiftErrorsData, *, dark: bool = False) -> go.Figure:
        """A line for each map, on a logarithmic axis."""
        names, places, errors = zip(*data.curves, strict=True)
        return errors_figure(places, errors, names, dark=dark)

    def tables(self, data: ShiftErrorsData) -> tuple[DataFrame, ...]:
        """The errors, and the shares of variance that the maps leave unexplained."""
        shares = [(f.unexplained_fitted, f.unexplained_held_out, f.unexplained_identity) for f in data.fits]
        columns = ["on fitted positions", "on held-out positions", "held out, PE(pos) unchanged"]
        return (
            *(
                column_table(name, [f"position {place}" for place in places], {"largest error": error})
                for name, places, error in data.curves
            ),
            matrix_table("variance left unexplained", np.array(shares), data.titles, columns),
        )

    def checks(self, lab: Lab, learned: LearnedTable | None, data: ShiftErrorsData) -> Iterator[Check]:
        """Turns and maps every row again."""
        found = self.pair(lab, learned, reached=True)
        sinusoidal = next(iter(found.values()))
        yield check_rotation_errors(sinusoidal, self.k, self.base, data.exact)
        rows = min(map(len, found.values()))
        yield agree("The maps use the rows that all tables have", data.rows, rows, 0, "rows counted")
        for name, table, fit in zip(("sinusoidal", "learned"), found.values(), data.fits, strict=False):
            yield from check_fit(table[:rows], self.k, fit, name)


def _fitted_tables(found: dict[str, Rows], k: int) -> list[Rows]:
    """Returns the rows that maps are fitted to, as many of each table; ValueError where there are too few."""
    rows = min(map(len, found.values()))
    if rows - k < FIT_PAIRS:
        raise ValueError(
            f"a map needs at least {FIT_PAIRS} pairs of positions; a shift by {k} leaves {max(rows - k, 0)} "
            f"in the {rows} rows of the shorter table"
        )
    return [table[:rows] for table in found.values()]
