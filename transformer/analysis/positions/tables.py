"""Measures position tables: how similar positions are, and what a shift by k does to them (section 3.5).

Tables come in as arrays, sinusoidal or learned, and are computed with in float64.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.model.positions import sinusoidal_table
from transformer.model.taps import Stack
from transformer.model.transformer import Transformer
from transformer.training.devices import seeded

Table = Float[ndarray, "position d_model"]
Matrix = Float[ndarray, "position position"]
Similarity = Literal["dot", "cosine"]


@dataclass(frozen=True)
class OffsetProfile:
    """The similarity of two positions against the offset between them."""

    offset: Int[ndarray, " offset"]
    mean: Float[ndarray, " offset"]
    low: Float[ndarray, " offset"]
    high: Float[ndarray, " offset"]


@dataclass(frozen=True)
class ShiftFit:
    """The best linear map from PE(pos) to PE(pos + k), fitted on some positions and measured on the others."""

    matrix: Float[ndarray, "d_model d_model"]
    """PE(pos + k) is about matrix @ PE(pos)."""
    fitted: Int[ndarray, " even"]
    """Positions pos whose pair the map was fitted to."""
    held_out: Int[ndarray, " odd"]
    """Positions pos whose pair was held out."""
    error: Float[ndarray, " pair"]
    """Largest error of a dimension, at each pos from 0 on."""
    unexplained_fitted: float
    """Share of the variance of PE(pos + k) that the map misses on the fitted positions: 0 is perfect."""
    unexplained_held_out: float
    """The same on held-out positions; 1 is as good as always answering the mean of the fitted targets."""
    unexplained_identity: float
    """The same, held out, for the map that returns PE(pos) itself."""


def sinusoids(length: int, d_model: int, base: float = 10_000.0) -> Table:
    """Returns the paper's table in float32, as a model holds it."""
    return sinusoidal_table(length, d_model, base=base).numpy()


def wavelengths(d_model: int, base: float = 10_000.0) -> Float[ndarray, " frequency"]:
    """Returns the period of dimensions 2i and 2i + 1, in positions: from 2 pi up, approaching base * 2 pi."""
    return 2 * np.pi * base ** (np.arange(0, d_model, 2) / d_model)


def concatenated(table: Table) -> Table:
    """Reorders the columns: all even dimensions (sines) first, then all odd ones (cosines)."""
    return np.concatenate((table[:, 0::2], table[:, 1::2]), axis=1)


def model_table(model: Transformer, stack: Stack) -> Float[ndarray, "position d_model"] | None:
    """Returns the rows that this model adds at each position of a stack, or None where it adds none."""
    positions = getattr(model, stack).embedding.positions
    return None if positions is None else positions.table.detach().cpu().float().numpy()


def initial_model(model: Transformer, seed: int) -> Transformer:
    """Returns the model as training with this seed started: weights are drawn on the CPU, so that they reproduce."""
    with seeded(seed, torch.device("cpu")):
        return Transformer(model.config)


def untouched_rows(table: Table, start: Table) -> Int[ndarray, " row"]:
    """Returns the positions whose row is bit for bit what it was before training, because no sentence reached them."""
    return np.flatnonzero((table == start).all(axis=1))


def similarity(table: Table, kind: Similarity) -> Matrix:
    """Returns the dot product, or the cosine, of each pair of rows."""
    rows = table.astype(np.float64)
    if kind == "cosine":
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return rows @ rows.T


def by_offset(matrix: Matrix) -> OffsetProfile:
    """Returns the mean, the lowest and the highest value on each diagonal of a similarity matrix."""
    diagonals = [np.diagonal(matrix, offset) for offset in range(len(matrix))]
    mean, low, high = (np.array([f(d) for d in diagonals]) for f in (np.mean, np.min, np.max))
    return OffsetProfile(np.arange(len(matrix)), mean, low, high)


def rotation(d_model: int, k: int, base: float = 10_000.0) -> Float[ndarray, "d_model d_model"]:
    """Returns the matrix that turns PE(pos) into PE(pos + k) at every pos.

    Each pair (sin, cos) turns by k / base^(2i / d_model).
    """
    angle = k / base ** (np.arange(0, d_model, 2) / d_model)
    turn, even = np.zeros((d_model, d_model)), np.arange(0, d_model, 2)
    turn[even, even] = turn[even + 1, even + 1] = np.cos(angle)
    turn[even, even + 1], turn[even + 1, even] = np.sin(angle), -np.sin(angle)
    return turn


def shift_error(
    table: Float[ndarray, "position d_model"], matrix: Float[ndarray, "d_model d_model"], k: int
) -> Float[ndarray, " pair"]:
    """Returns the largest error of a dimension of matrix @ PE(pos) against PE(pos + k), for each pos with a pos + k."""
    start, end = _pairs(table, k)
    return np.abs(start @ matrix.T - end).max(axis=1)


def fit_shift(table: Float[ndarray, "position d_model"], k: int) -> ShiftFit:
    """Fits the least-squares map for a shift by k on every second position; of equally good maps, the smallest.

    ValueError where the table has too few pairs of positions k apart.
    """
    start, end = _pairs(table, k)
    if len(start) < 4:
        raise ValueError(
            f"a shift by {k} leaves {len(start)} pairs of positions in a table of {len(table)}; 4 are needed"
        )
    fitted, held_out = np.arange(0, len(start), 2), np.arange(1, len(start), 2)
    transposed, *_ = np.linalg.lstsq(start[fitted], end[fitted], rcond=None)
    mean = end[fitted].mean(axis=0)

    def unexplained(guess: ndarray, rows: ndarray) -> float:
        total = float(((end[rows] - mean) ** 2).sum())
        missed = float(((guess[rows] - end[rows]) ** 2).sum())
        return missed / total if total else 0.0

    return ShiftFit(
        matrix=transposed.T,
        fitted=fitted,
        held_out=held_out,
        error=shift_error(table, transposed.T, k),
        unexplained_fitted=unexplained(start @ transposed, fitted),
        unexplained_held_out=unexplained(start @ transposed, held_out),
        unexplained_identity=unexplained(start, held_out),
    )


def _pairs(table: Table, k: int) -> tuple[Float[ndarray, "pair d_model"], Float[ndarray, "pair d_model"]]:
    if not 0 <= k < len(table):
        raise ValueError(f"a shift by {k} leaves no pair of positions in a table of {len(table)}")
    rows = table.astype(np.float64)
    return rows[: len(rows) - k], rows[k:]
