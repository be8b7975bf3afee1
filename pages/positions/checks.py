"""The checks of the Positions page's figures."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from pages.positions.tables import Table, Tables
from pages.shared import loading
from pages.shared.checks import badge
from transformer.analysis.checks import Check, agree
from transformer.analysis.figure_checks import check_likeness, check_sinusoids
from transformer.analysis.positions.lengths import LengthScore
from transformer.analysis.positions.score_decomposition import ScoreSplit
from transformer.analysis.positions.tables import ByOffset, ShiftFit
from transformer.checkpoints.settings import WEIGHTS_FILE
from transformer.checkpoints.store import load_tensors


def check_tables(shown: Tables, *, key: str) -> None:
    """Of the tables: the formula entry by entry, and the learned rows as they stand on disk."""

    def run() -> Iterable[Check]:
        yield from check_sinusoids(shown.sinusoidal, shown.choices.base)
        if shown.learned is not None and shown.choices.moment == "trained":
            lab = loading.get_lab(shown.partner)
            tensors, _ = load_tensors(lab.checkpoint.folder / WEIGHTS_FILE)
            rows = tensors[f"{shown.choices.stack}.embedding.positions.table"].float().numpy()[: shown.length]
            how = f"{rows.shape[0]:,} × {rows.shape[1]:,} entries read from {WEIGHTS_FILE}"
            yield agree("The learned rows are those on disk", shown.cut, rows, 0, how)

    badge(run, key=key)


def check_matrices(
    values: Sequence[Table], names: Sequence[str], matrices: Sequence[np.ndarray], *, cosine: bool
) -> None:
    """Of likenesses: the products made again, one by one."""

    def run() -> Iterable[Check]:
        for table, name, matrix in zip(values, names, matrices, strict=True):
            for check in check_likeness(table, matrix, cosine=cosine):
                yield replace(check, claim=f"{name}: {check.claim[:1].lower()}{check.claim[1:]}")

    badge(run, key="proof-alike")


def check_offsets(names: Sequence[str], matrices: Sequence[np.ndarray], offsets: Sequence[ByOffset]) -> None:
    """Of likeness against offset: mean, lowest and highest of each diagonal, read again cell by cell."""

    def run() -> Iterable[Check]:
        for name, matrix, found in zip(names, matrices, offsets, strict=True):
            n = len(matrix)
            diagonals = [[float(matrix[i, i + k]) for i in range(n - k)] for k in range(n)]
            means = [math.fsum(diagonal) / len(diagonal) for diagonal in diagonals]
            how = f"{n} diagonals summed again"
            yield agree(f"{name}: the line is the mean at each distance", found.mean, means, 1e-6 * _size(matrix), how)
            edges = np.array([(min(diagonal), max(diagonal)) for diagonal in diagonals]).T
            claim = f"{name}: the band runs from the lowest to the highest"
            yield agree(claim, np.stack((found.low, found.high)), edges, 0, f"{n} diagonals searched again")

    badge(run, key="proof-offsets")


def check_maps(turn: np.ndarray, values: Sequence[Table], k: int, fits: Sequence[ShiftFit]) -> None:
    """Of the maps: the rotation is one, and no small change of a fitted map fits its positions better."""

    def run() -> Iterable[Check]:
        how = "the matrix times its transpose against the identity"
        yield agree("The rotation turns and stretches nothing", turn @ turn.T, np.eye(len(turn)), 1e-9, how)
        for name, table, fit in zip(("sinusoidal", "learned"), values, fits, strict=False):
            rows = table.astype(np.float64)
            start, end = rows[fit.fitted], rows[fit.fitted + k]
            slope = float(np.abs(start.T @ (start @ fit.matrix.T - end)).max())
            claim = f"The fitted map is the one of least squares, {name}"
            how = "the slope of the squared error at the map, largest of its entries"
            yield Check(claim, slope, 1e-9 * _size(rows) ** 2 * rows.size, how)

    badge(run, key="proof-maps")


def check_errors(
    values: Sequence[Table], k: int, turn: np.ndarray, exact: np.ndarray, fits: Sequence[ShiftFit]
) -> None:
    """Of the errors: those drawn are those of the maps drawn."""

    def run() -> Iterable[Check]:
        yield agree(
            "The rotation's error at each position", exact, _errors(values[0], turn, k), 1e-9, "row by row again"
        )
        for name, table, fit in zip(("sinusoidal", "learned"), values, fits, strict=False):
            rows = table[: len(fit.error) + k]
            claim = f"The fitted map's error at each position, {name}"
            yield agree(claim, fit.error, _errors(rows, fit.matrix, k), 1e-6 * _size(rows), "row by row again")

    badge(run, key="proof-shifts")


def _errors(table: Table, matrix: np.ndarray, k: int) -> list[float]:
    rows = table.astype(np.float64)
    return [float(np.abs(matrix @ rows[i] - rows[i + k]).max()) for i in range(len(rows) - k)]


_Z = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations."""


def _size(values: np.ndarray) -> float:
    return max(1.0, float(np.abs(values).max(initial=0.0)))


def check_split(split: ScoreSplit) -> None:
    """Of the four parts: together they are the score that the pass computed."""

    def run() -> Iterable[Check]:
        tolerance = 1e-4 * _size(split.scores)
        how = f"{split.scores.size:,} cells of all heads, four parts each"
        yield agree("The four parts sum to the recorded score", split.parts.sum(axis=0), split.scores, tolerance, how)

    badge(run, key="proof-parts")


def check_curves(shown: Callable[[], np.ndarray], again: Callable[[], np.ndarray]) -> None:
    """Of learning curves: their points as they stand on disk now."""
    badge(
        lambda: (agree("Each point is the run's own, as it stands on disk", shown(), again(), 0, "read again"),),
        key="proof-curves",
    )


def check_intervals(scores: Sequence[LengthScore], intervals: Sequence[tuple[float, float]]) -> None:
    """Of Wilson's intervals: both ends solve (p - x)^2 = z^2 x (1 - x) / n, which defines them (Wilson 1927)."""

    def run() -> Iterable[Check]:
        off = [
            abs((score.right / score.count - end) ** 2 - _Z**2 * end * (1 - end) / score.count)
            for score, ends in zip(scores, intervals, strict=True)
            if score.count
            for end in ends
        ]
        how = f"{len(off)} ends of intervals put into the equation that defines them; largest remainder"
        yield Check("Each band is Wilson's 95 % interval", max(off, default=0.0), 1e-6, how)
        most = max((score.right - score.count for score in scores), default=0)
        yield Check("No more strings are right than were tried", max(0, most), 0, f"{len(scores)} lengths counted")

    badge(run, key="proof-intervals")


def check_lengths(
    scores: Sequence[LengthScore], lengths: Sequence[int], right_one_by_one: Callable[[int], int]
) -> None:
    """Of exact match by length: some lengths translated again, string by string."""

    def run() -> Iterable[Check]:
        shown = {score.length: score.right for score in scores}
        how = f"lengths {', '.join(map(str, lengths))} translated again, one string at a time"
        again = [right_one_by_one(length) for length in lengths]
        yield agree("As many strings come out right", [shown[length] for length in lengths], again, 0, how)

    badge(run, key="proof-lengths")
