"""Checks of what a picture of attention draws beside raw weights: contributions, rollout, heads and words combined.

Each is computed again in another way than the one that drew it: vectors instead of lengths, walks back instead of
products of matrices, one cell at a time instead of whole arrays.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.attention.entry_reference import record_rows
from transformer.analysis.checks import Check, agree
from transformer.interventions import Intervention
from transformer.model.taps import Address
from transformer.model.transformer import Transformer

Groups = Sequence[Sequence[int]]
"""The positions of a pass that each row or column of a picture stands for."""


def check_contributions(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    address: Address,
    norms: Float[ndarray, "head query key"],
) -> tuple[Check, ...]:
    """Checks the lengths of what each cell of a block adds to its output in the decoding of this source."""
    again, largest_miss = np.zeros(norms.shape), 0.0
    for row in record_rows(model, source, switches, {}, [address])[0]:
        lengths = np.sqrt((row.vectors**2).sum(axis=-1))
        again[:, row.query, : lengths.shape[1]] = lengths
        largest_miss = max(largest_miss, float(np.abs(row.expected_output - row.output).max()))
    return (
        agree(
            "Each cell is the length of α · v W_O",
            norms,
            again,
            1e-5,
            f"decoded again, {again.size:,} vectors multiplied out in double precision and measured",
        ),
        Check(
            "The vectors of all cells of a row and the bias sum to the block's output",
            largest_miss,
            1e-4,
            "vectors of every head and row summed, with what switches put in their place, against the recorded output",
        ),
    )


def check_rollout(shown: Float[ndarray, "query key"], again: Float[ndarray, "query key"], layers: str) -> Check:
    """Checks that a rollout is what walking back gives."""
    how = f"every position followed back {layers}, one step at a time, in double precision"
    return agree("Each cell is the share of all paths back that end at its input", shown, again, 1e-5, how)


def walk_back(
    weights: Float[ndarray, "layer head query query"], residual: Sequence[bool]
) -> Float[ndarray, "query query"]:
    """Returns where walks end that start at each position behind the last layer.

    In each layer a walk stays, over the residual, or follows the mean weights; what leads nowhere counts for nothing.
    """
    stays, _ = _odds(weights, residual)
    size = weights.shape[-1]
    ends = np.zeros((size, size))
    for start in range(size):
        at = np.zeros(size)
        at[start] = 1.0
        for step in reversed(stays):
            at = step.T @ at
        ends[start] = at
    return ends


def walk_back_to_source(
    encoder: Float[ndarray, "source source"],
    decoder: Float[ndarray, "layer head query query"],
    cross: Float[ndarray, "layer head query source"],
    residual_self: Sequence[bool],
    residual_cross: Sequence[bool],
) -> tuple[Float[ndarray, "query source"], Float[ndarray, "query query"]]:
    """Returns where walks from decoder positions end in the source, and where among the decoder's own inputs.

    In each layer, back to front, a walk first leaves through cross-attention into the encoder or stays, then moves on
    in the decoder's self-attention or stays.
    """
    reaches = encoder.sum(axis=-1)
    alive = np.ones(decoder.shape[-1])
    rounds = []
    for mixed, seen, kept_self, kept_cross in zip(
        decoder.mean(axis=1, dtype=np.float64),
        cross.mean(axis=1, dtype=np.float64),
        residual_self,
        residual_cross,
        strict=True,
    ):
        moves = mixed + np.eye(len(mixed)) * kept_self
        moves = moves / _nonzero(moves @ alive)[:, None]
        alive = (moves @ alive > 0).astype(float)
        total = _nonzero(seen @ reaches + kept_cross * alive)
        rounds.append((moves, seen / total[:, None], kept_cross / total))
        alive = ((seen @ reaches + kept_cross * alive) > 0).astype(float)
    ends, own = np.zeros((decoder.shape[-1], len(encoder))), np.zeros(decoder.shape[-1:] * 2)
    for start in range(len(ends)):
        at = np.zeros(len(ends))
        at[start] = 1.0
        for moves, leaves, stays in reversed(rounds):
            ends[start] += encoder.T @ (leaves.T @ at)
            at = moves.T @ (stays * at)
        own[start] = at
    return ends, own


def _odds(
    weights: Float[ndarray, "layer head query query"], residual: Sequence[bool]
) -> tuple[list[Float[ndarray, "query query"]], Float[ndarray, " query"]]:
    """Returns the next step of a walk from each position in each layer, and which positions lead anywhere at all."""
    alive, found = np.ones(weights.shape[-1]), []
    for layer, kept in zip(weights, residual, strict=True):
        moves = layer.mean(axis=0, dtype=np.float64) + np.eye(len(alive)) * kept
        found.append(moves / _nonzero(moves @ alive)[:, None])
        alive = (found[-1] @ alive > 0).astype(float)
    return found, alive


def _nonzero(sums: Float[ndarray, " _"]) -> Float[ndarray, " _"]:
    return np.where(sums > 0, sums, 1.0)


def check_combination(
    shown: Float[ndarray, "row column"],
    values: Float[ndarray, "head query key"],
    rows: Groups,
    columns: Groups,
    *,
    largest: bool,
    rescaled: bool,
) -> Check:
    """Checks that a picture's cells are these heads' values, as `put_together` combines them."""
    again = put_together(values, rows, columns, largest=largest, rescaled=rescaled)
    heads = f"{len(values)} heads" if len(values) > 1 else "one head"
    how = f"{again.size:,} cells put together again from {heads}, one by one, in double precision"
    tolerance = 0.0 if len(values) == 1 and not rescaled and _single(rows) and _single(columns) else 1e-5
    return agree("The picture draws these numbers", shown, again, tolerance, how)


def put_together(
    values: Float[ndarray, "head query key"], rows: Groups, columns: Groups, *, largest: bool, rescaled: bool
) -> Float[ndarray, "row column"]:
    """Returns the values of heads combined: summed over the pieces of a column, averaged over those of a row.

    Then the heads' mean (or `largest`) of that is taken, and with `rescaled` each row is divided by its sum.
    """
    again = np.zeros((len(rows), len(columns)))
    for i, queries in enumerate(rows):
        for j, keys in enumerate(columns):
            each = [math.fsum(float(head[a, b]) for a in queries for b in keys) / len(queries) for head in values]
            again[i, j] = max(each) if largest else math.fsum(each) / len(each)
        total = math.fsum(again[i])
        if rescaled and total:
            again[i] /= total
    return again


def _single(groups: Groups) -> Bool[ndarray, ""] | bool:
    return all(len(positions) == 1 for positions in groups)
