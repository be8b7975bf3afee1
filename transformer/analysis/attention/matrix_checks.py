"""Proofs of what a picture of attention draws beside raw weights: contributions, rollout, heads and words combined.

Each is computed again by another road than the one that drew it: vectors instead of lengths, walks back instead of
products of matrices, one cell at a time instead of whole arrays.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.checks import Check, agree
from transformer.decoding.greedy import greedy
from transformer.interventions import Intervention, compile_interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.taps import Address, Recording
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
    """That these are the lengths of what each cell of a block adds to its output, in the decoding of this source."""
    tap = compile_interventions(switches, model)
    wanted = {address.site(name) for name in ("weights", "v", "heads", "output")}
    steps = list(
        greedy(model, torch.tensor([source]), max_length=model.config.max_length, tap=tap, record=wanted.__contains__)
    )
    whole = address.stack == "encoder"
    if whole:
        steps = steps[:1]
    elif address.sublayer == "self" and model.needs_recomputation(tap):
        steps, whole = steps[-1:], True
    again, replaced = np.zeros(norms.shape), [_replaced(spec, address, len(norms)) for spec in switches]
    put, cut = frozenset().union(*(heads for heads, _ in replaced)), any(output for _, output in replaced)
    factors = [math.prod(_factor(spec, address, head) for spec in switches) for head in range(len(norms))]
    largest_miss, query = 0.0, 0
    for step in steps:
        assert step.recording is not None, "these steps record"
        passed = step.recording
        n_rows = passed[address.site("weights")].size(2)
        for row in range(n_rows) if whole else [n_rows - 1]:
            lengths, miss = _row_of_vectors(model, passed, address, row, put=put, cut=cut, factors=factors)
            again[:, query, : lengths.shape[1]] = lengths
            largest_miss, query = max(largest_miss, miss), query + 1
    return (
        agree(
            "Each cell is the length of α · v W_O",
            norms,
            again,
            1e-5,
            f"decoded again, {again.size:,} vectors multiplied out one by one in double precision and measured",
        ),
        Check(
            "The vectors of a row sum to what its head passes on",
            largest_miss,
            1e-4,
            "vectors of every head and row summed, against that head's recorded context times W_O; largest distance "
            "(heads whose context or output a switch replaced pass on nothing of them)",
        ),
    )


def _row_of_vectors(
    model: Transformer,
    recording: Recording,
    address: Address,
    row: int,
    *,
    put: Collection[int],
    cut: bool,
    factors: Sequence[float],
) -> tuple[Float[ndarray, "head key"], float]:
    """The lengths of a row's vectors in each head, and how far their sum lies from what the head passed on. A
    switch may have `put` something else in place of the context of these heads, or `cut` all of them off by an output
    of its own: where one did, lengths are 0. Another may multiply what each head gathered by its factor."""
    sublayer = model.get_submodule(f"{address.stack}.layers.{address.layer}.{address.sublayer}_attention")
    assert isinstance(sublayer, MultiHeadAttention)
    weights, values, heads = (recording[address.site(name)][0].double().numpy() for name in ("weights", "v", "heads"))
    matrix = sublayer.output.weight.detach().double().numpy()
    output, size = recording[address.site("output")][0, row].double().numpy(), values.shape[-1]
    made = matrix @ heads[:, row].ravel() + sublayer.output.bias.detach().double().numpy()
    if cut and float(np.abs(made - output).max()) > 1e-4 * (1 + float(np.abs(made).max())):
        return np.zeros((len(weights), weights.shape[-1])), 0.0
    lengths, miss = np.zeros((len(weights), weights.shape[-1])), 0.0
    for head, alphas in enumerate(weights[:, row]):
        part = matrix[:, head * size : (head + 1) * size]
        vectors = [part @ (factors[head] * alpha * value) for alpha, value in zip(alphas, values[head], strict=True)]
        passed_on = part @ heads[head, row]
        distance = float(np.abs(np.sum(vectors, axis=0) - passed_on).max())
        if head in put and distance > 1e-4 * (1 + float(np.abs(passed_on).max())):
            continue
        miss = max(miss, distance)
        lengths[head] = [math.sqrt(math.fsum(vector * vector)) for vector in vectors]
    return lengths, miss


def _factor(spec: Intervention, address: Address, head: int) -> float:
    """The factor by which a switch multiplies what a head of this block gathered."""
    return spec.head_factors.get(head, 1.0) if spec.address == address else 1.0


def _replaced(spec: Intervention, address: Address, n_heads: int) -> tuple[frozenset[int], bool]:
    """The heads of this block whose context a switch may replace, and whether it may replace the block's output."""
    found = spec.replaced
    if found is None or spec.address != address:
        return frozenset(), False
    if found.tensor == "heads":
        return frozenset(range(n_heads) if found.heads is None else found.heads), False
    return frozenset(), found.tensor == "output"


def check_rollout(shown: Float[ndarray, "query key"], again: Float[ndarray, "query key"], layers: str) -> Check:
    """That a rollout is what walking back gives."""
    how = f"every position followed back {layers}, one step at a time, in double precision"
    return agree("Each cell is the share of all paths back that end at its input", shown, again, 1e-5, how)


def walk_back(
    weights: Float[ndarray, "layer head query query"], residual: Sequence[bool]
) -> Float[ndarray, "query query"]:
    """Where walks from each position end that start behind the last layer: in each layer a walk stays, over the
    residual, or follows the mean weights, and what leads nowhere counts for nothing."""
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
    """Returns where walks from decoder positions end in the source, and where among the decoder's own inputs: in each
    layer, back to front, a walk first leaves through cross-attention into the encoder or stays, then moves on in the
    decoder's self-attention or stays."""
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
) -> tuple[list[Float[ndarray, "query query"]], Float[ndarray, "query"]]:
    """Where a walk goes from each position in each layer, and which positions lead anywhere at all."""
    alive, found = np.ones(weights.shape[-1]), []
    for layer, kept in zip(weights, residual, strict=True):
        moves = layer.mean(axis=0, dtype=np.float64) + np.eye(len(alive)) * kept
        found.append(moves / _nonzero(moves @ alive)[:, None])
        alive = (found[-1] @ alive > 0).astype(float)
    return found, alive


def _nonzero(sums: Float[ndarray, "_"]) -> Float[ndarray, "_"]:
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
    """That a picture's cells are these heads' values, as `put_together` puts them."""
    again = put_together(values, rows, columns, largest=largest, rescaled=rescaled)
    heads = f"{len(values)} heads" if len(values) > 1 else "one head"
    how = f"{again.size:,} cells put together again from {heads}, one by one, in double precision"
    tolerance = 0.0 if len(values) == 1 and not rescaled and _single(rows) and _single(columns) else 1e-5
    return agree("The picture draws these numbers", shown, again, tolerance, how)


def put_together(
    values: Float[ndarray, "head query key"], rows: Groups, columns: Groups, *, largest: bool, rescaled: bool
) -> Float[ndarray, "row column"]:
    """Each head's values summed over the pieces of a column and averaged over those of a row, then the heads' mean (or
    `largest`) of that, and with `rescaled` each row divided by its sum."""
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
