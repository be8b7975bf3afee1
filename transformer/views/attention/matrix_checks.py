"""Checks of matrices of attention: every value, label and mark of the data is computed again by another way."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.attention.aggregation import Combination, Marks
from transformer.analysis.attention.entropy import Unit
from transformer.analysis.attention.matrix_checks import (
    check_combination,
    check_contributions,
    check_rollout,
    put_together,
    walk_back,
    walk_back_to_source,
)
from transformer.analysis.attention.silenced_heads import effective_weights, residuals
from transformer.analysis.attention.vectors import record_vectors
from transformer.analysis.attention.weight_checks import check_recorded
from transformer.analysis.checks import Check, agree
from transformer.inspection.inspection import Inspection
from transformer.interventions import heads_set_to
from transformer.interventions.names import plural
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.taps import Address
from transformer.views.attention.matrix_data import MARKS, MatrixData, Side, ids_at_sides, sides


@runtime_checkable
class Reduced(Protocol):
    """What the checks of every matrix need of its view."""

    @property
    def kind(self) -> KindName: ...
    @property
    def marks(self) -> Marks: ...


@runtime_checkable
class Layered(Reduced, Protocol):
    """What they need of a view of one layer, or of all layers up to one."""

    @property
    def layer(self) -> int: ...
    @property
    def words(self) -> bool: ...


@runtime_checkable
class Heads(Layered, Protocol):
    """What they need of a view of heads."""

    @property
    def heads(self) -> tuple[int, ...]: ...
    @property
    def how(self) -> Combination: ...
    @property
    def shows(self) -> Literal["weights", "norms"]: ...

    def values_of_layer(self, lab: Lab, seen: Inspection) -> Float[ndarray, "head query key"]: ...


@runtime_checkable
class Entropies(Reduced, Protocol):
    """What they need of a view of entropies."""

    @property
    def unit(self) -> Unit: ...


def check_head_matrix(view: Heads, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
    """Checks a matrix of one head or several."""
    yield from check_recorded(lab.model, seen, view.kind)
    values = view.values_of_layer(lab, seen)
    if view.shows == "norms":
        stack, sublayer = AttentionKind(view.kind).where
        address = Address(stack, view.layer, sublayer)
        yield from check_contributions(lab.model, seen.source_ids, seen.interventions, address, values)
    combined = {"largest": view.how == "max", "rescaled": view.marks == "renormalised"}
    chosen = values[list(view.heads)]
    yield check_combination(data.values, chosen, data.rows.positions, data.columns.positions, **combined)
    yield from _check_sides(view, lab, seen, data)
    yield from _check_masks(view, seen, data)
    yield _check_entries(view, values, data)
    yield from _check_off(view, lab, seen, data)
    if data.on_marks is not None:
        whole = sides(lab, seen, view.kind, words=view.words)[1].positions
        total = put_together(chosen, data.rows.positions, whole, largest=view.how == "max", rescaled=False)
        yield _check_on_marks(data, total, whole)


def check_rollout_matrix(view: Layered, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
    """Checks a rollout by walking back through the layers."""
    yield from check_recorded(lab.model, seen, view.kind)
    walked, alive, layers = _walked(view, lab, seen)
    rescaled = view.marks == "renormalised"
    again = put_together(walked[None], data.rows.positions, data.columns.positions, largest=False, rescaled=rescaled)
    yield check_rollout(data.values, again, layers)
    how = "paths of every position counted again"
    yield agree("The share of a position's paths that end here", data.arrived, walked.sum(axis=-1), 1e-5, how)
    yield agree("Which positions any path leads from", data.alive, alive, 0, how)
    yield _nothing_lost(view, lab, seen)
    yield from _check_sides(view, lab, seen, data)
    if data.mask is not None:
        yield _check_reach(view, lab, seen, data)
    yield agree("A rollout is not drawn as off", data.off, False, 0, "it counts heads that are off as zero")
    if data.on_marks is not None:
        whole = sides(lab, seen, view.kind, words=view.words)[1].positions
        total = put_together(walked[None], data.rows.positions, whole, largest=False, rescaled=False)
        yield _check_on_marks(data, total, whole)


def check_entropy_matrix(view: Entropies, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
    """Checks the entropy of every row of every head."""
    yield from check_recorded(lab.model, seen, view.kind)
    attention, log = seen.attention(view.kind), np.log if view.unit == "nats" else np.log2
    weights, rows = attention.weights, [at[0] for at in data.rows.positions]
    heads = list(np.ndindex(weights.shape[:2]))
    again = [[_entropy(weights[at][row].astype(np.float64), log) for at in heads] for row in rows]
    name = "ln" if view.unit == "nats" else "log₂"
    how = f"{len(rows) * len(heads):,} rows summed again, key by key"
    yield agree(f"Entropy is −Σ w {name} w of each row", data.values, again, 1e-5, how)
    allowed = [[sum(map(bool, attention.mask[layer, row])) for layer, _ in heads] for row in rows]
    bound = [[float(log(max(n, 1))) for n in row] for row in allowed]
    yield agree("No row's entropy exceeds the logarithm of its keys", data.largest, bound, 1e-5, "keys counted again")
    yield from _check_rows(view, lab, seen, data)
    places = [[place] for place in range(len(heads))], [False] * len(heads)
    yield agree("Each column is a head", _flat(data.columns), _flat_of(*places), 0, "layers and heads counted")
    largest = [[(*at, row, list(weights[at][row]).index(max(weights[at][row]))) for at in heads] for row in rows]
    yield agree("Each entry leads to its row's largest weight", data.entries, largest, 0, "keys looked at one by one")
    yield agree("Entropy is not drawn as off", data.off, False, 0, "weights are computed whatever follows")


def _walked(view: Layered, lab: Lab, seen: Inspection) -> tuple[Float[ndarray, "query key"], Sequence[bool], str]:
    """Where walks back from each position end, whether any does, and the layers that they lead through."""
    kind, last, built_with = view.kind, view.layer + 1, lab.model.config.residual

    def given(of: AttentionKind) -> tuple[ndarray, list[bool]]:
        upto = None if of == "encoder_self" != kind else last
        return effective_weights(seen, of)[:upto], residuals(seen, of, built_with)[:upto]

    if kind != "cross":
        walked = walk_back(*given(kind))
        return walked, walked.any(axis=-1).tolist(), f"through {last} {plural(last, 'layer')}"
    decoder, cross = given("decoder_self"), given("cross")
    encoder = walk_back(*given("encoder_self"))
    walked, own = walk_back_to_source(encoder, decoder[0], cross[0], decoder[1], cross[1])
    alive = (walked.any(axis=-1) | own.any(axis=-1)).tolist()
    return walked, alive, f"through {last} {plural(last, 'decoder layer')} and the whole encoder"


def _nothing_lost(view: Layered, lab: Lab, seen: Inspection) -> Check:
    """Checks that a rollout follows no row of a head of which nothing went any further in the pass."""
    last = view.layer + 1
    kinds: dict[AttentionKind, int | None] = {view.kind: last}
    if view.kind == "cross":
        kinds |= {"encoder_self": None, "decoder_self": last}
    lost, rows = 0, 0
    for kind, upto in kinds.items():
        vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, *AttentionKind(kind).where)
        reached = vectors.reached[:upto]
        lost += int((effective_weights(seen, kind)[:upto].any(axis=-1) & ~reached).sum())
        rows += reached.size
    how = (
        f"recorded again, weights times values of {rows:,} rows of heads against what went into W_O, and what W_O "
        "makes of it against the block's output; rows that differ and count all the same"
    )
    return Check("No attention counts of which nothing arrived", lost, 0.0, how)


def _check_sides(view: Layered, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
    yield from _check_rows(view, lab, seen, data)
    yield _tokens_at("column", data.columns, ids_at_sides(lab, seen, view.kind)[1], view.marks != "shown")


def _check_rows(view: Reduced, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
    yield _tokens_at("row", data.rows, ids_at_sides(lab, seen, view.kind)[0], view.marks != "shown")


def _tokens_at(name: str, side: Side, ids: Sequence[int], without_marks: bool) -> Check:
    """Checks that a side has every token once and in order, and knows which are marks."""
    shown = [i for i, token in enumerate(ids) if not (without_marks and token in MARKS)]
    edges = {at[0] for at in side.positions}
    places: list[list[int]] = []
    for i in shown:
        if i in edges or not places:
            places.append([])
        places[-1].append(i)
    marks = [all(ids[i] in MARKS for i in at) for at in places]
    claim = f"Each {name} is its tokens of the pass"
    return agree(claim, _flat(side), _flat_of(places, marks), 0, f"{len(ids)} tokens counted")


def _flat(side: Side) -> list[int]:
    return _flat_of(side.positions, side.special)


def _flat_of(places: Sequence[Sequence[int]], marks: Sequence[bool]) -> list[int]:
    return [number for at, mark in zip(places, marks, strict=True) for number in (len(at), *at, int(mark))]


def _check_masks(view: Heads, seen: Inspection, data: MatrixData) -> Iterator[Check]:
    """Looks at the pieces of every cell one by one."""
    mask, (stack, sublayer) = seen.attention(view.kind).mask[view.layer], AttentionKind(view.kind).where
    cells = [[list(product(a, b)) for b in data.columns.positions] for a in data.rows.positions]
    how = f"{data.values.size:,} cells looked at one by one"
    allowed = [[any(mask[at] for at in pieces) for pieces in row] for row in cells]
    yield agree("Masked are the cells that the pass masked", data.mask, allowed, 0, how)
    if data.forbidden is None:
        return
    closed = {
        at
        for spec in seen.interventions
        for at in spec.forbidden
        if spec.address is not None and spec.address == Address(stack, view.layer, sublayer)
    }
    again = [[pieces[0] in closed for pieces in row] for row in cells]
    yield agree("Crossed out are the entries that a switch forbids", data.forbidden, again, 0, how)


def _check_entries(view: Heads, values: Float[ndarray, "head query key"], data: MatrixData) -> Check:
    """Checks that each cell leads to an entry of its own with the largest value, in the head that has most of it."""
    assert data.entries is not None, "a matrix of heads has them"
    wrong = 0
    for (row, from_), (column, to) in product(enumerate(data.rows.positions), enumerate(data.columns.positions)):
        layer, head, query, key = data.entries[row, column].tolist()
        sums = {h: float(values[h][np.ix_(from_, to)].sum(dtype=np.float64)) for h in view.heads}
        right = layer == view.layer and head in sums and query in from_ and key in to
        right = right and sums[head] >= max(sums.values()) - 1e-6
        wrong += not (right and values[head, query, key] == max(values[head, a, b] for a in from_ for b in to))
    how = f"{data.values.size:,} cells looked at one by one; wrong ones"
    return Check("Each cell leads to its largest weight", float(wrong), 0.0, how)


def _check_off(view: Heads, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
    """Checks that a matrix is grey only where nothing of its heads reached the output, and a switch took it away."""
    stack, sublayer = AttentionKind(view.kind).where
    vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, stack, sublayer)
    reached = vectors.reached[view.layer, list(view.heads)].any()
    taken = heads_set_to(seen.interventions, ("zero", "mean"))
    whole = any(
        spec.replaced is not None and (spec.replaced.tensor, spec.replaced.by) == ("output", "zero")
        for spec in seen.interventions
        if spec.address == Address(stack, view.layer, sublayer)
    )
    is_off = whole or all((stack, view.layer, sublayer, head) in taken for head in view.heads)
    how = "their context and the block's output recorded again"
    yield agree("Grey are heads of which nothing goes any further", data.off, is_off and not reached, 0, how)


def _check_reach(view: Layered, lab: Lab, seen: Inspection, data: MatrixData) -> Check:
    """Follows allowed entries and residuals back, position by position."""
    mask = seen.attention(view.kind).mask[: view.layer + 1]
    kept = residuals(seen, view.kind, lab.model.config.residual)[: view.layer + 1]
    ends = []
    for start in range(mask.shape[1]):
        at = {start}
        for layer, stays in zip(reversed(mask), reversed(kept), strict=True):
            at = {key for query in at for key in np.flatnonzero(layer[query]).tolist()} | (at if stays else set())
        ends.append(at)
    again = [
        [any(key in ends[query] for query in a for key in b) for b in data.columns.positions]
        for a in data.rows.positions
    ]
    return agree("Masked is what no path leads to", data.mask, again, 0, "allowed entries followed back one by one")


def _check_on_marks(data: MatrixData, total: Float[ndarray, "row column"], whole: Sequence[Sequence[int]]) -> Check:
    shown = set(data.columns.positions)
    gone = [tuple(at) not in shown for at in whole]
    share = float(total[:, gone].sum()) / float(total.sum()) if total.sum() else 0.0
    claim = "The share of rows that lay on start and end marks"
    return agree(claim, data.on_marks, share, 1e-5, "all columns put together again")


def _entropy(row: ndarray, log: np.ufunc) -> float:
    return -sum(float(w * log(w)) for w in row if w > 0) if row.any() else np.nan
