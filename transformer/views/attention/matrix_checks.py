"""Checks of matrices of attention: every value, label and mark of the data is computed again by another way."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.attention.aggregation import Marks
from transformer.analysis.attention.matrix_checks import walk_back, walk_back_to_source
from transformer.analysis.attention.one_head_reference import one_head_reached
from transformer.analysis.attention.silenced_heads import effective_weights, residuals
from transformer.analysis.attention.weight_checks import recorded_rows
from transformer.analysis.checks import Check, agree
from transformer.inspection.inspection import Inspection
from transformer.interventions import factors_of_heads, heads_set_to
from transformer.interventions.names import plural
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.taps import Address
from transformer.model.transformer import Transformer
from transformer.views.attention.matrix_data import MARKS, MatrixData, Side, ids_at_sides


def walked(
    lab: Lab, seen: Inspection, kind: KindName, n_layers: int
) -> tuple[Float[ndarray, "query key"], Sequence[bool], str]:
    """Returns where walks back from each position end, whether any does, and the layers that they lead through."""
    built_with = lab.transformer.config.residual

    def given(of: AttentionKind) -> tuple[ndarray, list[bool]]:
        upto = None if of == "encoder_self" != kind else n_layers
        return effective_weights(seen, of)[:upto], residuals(seen, of, built_with)[:upto]

    if kind != "cross":
        ends = walk_back(*given(AttentionKind(kind)))
        return ends, list(map(any, ends.tolist())), f"through {n_layers} {plural(n_layers, 'layer')}"
    decoder, cross = given(AttentionKind.DECODER_SELF), given(AttentionKind.CROSS)
    encoder = walk_back(*given(AttentionKind.ENCODER_SELF))
    ends, own = walk_back_to_source(encoder, decoder[0], cross[0], decoder[1], cross[1])
    alive = [any(a) or any(b) for a, b in zip(ends.tolist(), own.tolist(), strict=True)]
    return ends, alive, f"through {n_layers} {plural(n_layers, 'decoder layer')} and the whole encoder"


def nothing_lost(lab: Lab, seen: Inspection, kind: KindName, n_layers: int) -> Check:
    """Checks that a rollout counts attention by the part that goes on in the pass: nothing, all, or a factor of it."""
    kinds: dict[KindName, int | None] = {kind: n_layers}
    if kind == "cross":
        kinds |= {"encoder_self": None, "decoder_self": n_layers}
    lost, rows = 0, 0
    for of, upto in kinds.items():
        reached = _reached(lab, seen, AttentionKind(of))[:upto]
        counted, weights = effective_weights(seen, AttentionKind(of))[:upto], seen.attention(of).weights[:upto]
        stack, sublayer = AttentionKind(of).where
        addresses = [Address(stack, layer, sublayer) for layer in range(len(weights))]
        factors = np.array([factors_of_heads(seen.interventions, at, weights.shape[1]) for at in addresses])
        scaled = np.isclose(counted, weights * factors[..., None, None]) | (counted == 0)
        lost += int((counted.any(axis=-1) & ~reached | ~scaled.all(axis=-1)).sum())
        rows += reached.size
    how = (
        f"recorded again, weights times values of {rows:,} rows of heads, times their factors, against the input of "
        "W_O, and its output against the block's; rows that count for something else"
    )
    return Check("Attention counts by the part of it that switches let through", lost, 0.0, how)


def check_sides(lab: Lab, seen: Inspection, kind: KindName, marks: Marks, data: MatrixData) -> Iterator[Check]:
    """Checks that rows and columns have every token once and in order, and know which are marks."""
    yield check_rows(lab, seen, kind, marks, data)
    yield _check_tokens("column", data.columns, ids_at_sides(lab, seen, kind)[1], marks)


def check_rows(lab: Lab, seen: Inspection, kind: KindName, marks: Marks, data: MatrixData) -> Check:
    """Checks that rows have every token once and in order, and know which are marks."""
    return _check_tokens("row", data.rows, ids_at_sides(lab, seen, kind)[0], marks)


def _check_tokens(name: str, side: Side, ids: Sequence[int], marks: Marks) -> Check:
    shown = [i for i, token in enumerate(ids) if marks == "shown" or token not in MARKS]
    edges = {at[0] for at in side.positions}
    places: list[list[int]] = []
    for i in shown:
        if i in edges or not places:
            places.append([])
        places[-1].append(i)
    special = [all(ids[i] in MARKS for i in at) for at in places]
    claim = f"Each {name} stands for its tokens of the pass"
    return agree(claim, flat(side.positions, side.special), flat(places, special), 0, f"{len(ids)} tokens counted")


def flat(places: Sequence[Sequence[int]], special: Sequence[bool]) -> list[int]:
    """Returns the positions of a side and its marks as one list of numbers."""
    return [number for at, mark in zip(places, special, strict=True) for number in (len(at), *at, int(mark))]


def check_masks(seen: Inspection, kind: KindName, layer: int, data: MatrixData) -> Iterator[Check]:
    """Looks at the pieces of every cell one by one."""
    mask, (stack, sublayer) = seen.attention(kind).mask[layer], AttentionKind(kind).where
    cells = [[list(product(a, b)) for b in data.columns.positions] for a in data.rows.positions]
    how = f"{data.values.size:,} cells looked at one by one"
    allowed = [[any(mask[at] for at in pieces) for pieces in row] for row in cells]
    yield agree("The masked cells are those of the pass", data.mask, allowed, 0, how)
    if data.forbidden is None:
        return
    closed = {
        at for spec in seen.interventions if spec.address == Address(stack, layer, sublayer) for at in spec.forbidden
    }
    again = [[pieces[0] in closed for pieces in row] for row in cells]
    yield agree("The crossed-out entries are those that a switch forbids", data.forbidden, again, 0, how)


def check_entries(
    layer: int, heads: Sequence[int], values: Float[ndarray, "head query key"], data: MatrixData
) -> Check:
    """Checks that each cell leads to an entry of its own with the largest value, in the head that has most of it."""
    assert data.entries is not None, "a matrix of heads has them"
    wrong = 0
    for (row, from_), (column, to) in product(enumerate(data.rows.positions), enumerate(data.columns.positions)):
        at_layer, head, query, key = data.entries[row, column].tolist()
        sums = {h: float(values[h][np.ix_(from_, to)].sum(dtype=np.float64)) for h in heads}
        right = at_layer == layer and head in sums and query in from_ and key in to
        right = right and sums[head] >= max(sums.values()) - 1e-6
        wrong += not (right and values[head, query, key] == max(values[head, a, b] for a in from_ for b in to))
    how = f"{data.values.size:,} cells looked at one by one; wrong ones"
    return Check("Each cell leads to its largest weight", float(wrong), 0.0, how)


def check_reach(lab: Lab, seen: Inspection, kind: KindName, n_layers: int, data: MatrixData) -> Check:
    """Follows allowed entries and residuals back, position by position."""
    mask = seen.attention(kind).mask[:n_layers]
    kept = residuals(seen, kind, lab.transformer.config.residual)[:n_layers]
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
    return agree(
        "The masked cells are those that no path leads to",
        data.mask,
        again,
        0,
        "allowed entries followed back one by one",
    )


def check_on_marks(data: MatrixData, total: Float[ndarray, "row column"], whole: Sequence[Sequence[int]]) -> Check:
    """Sums the columns of start and end marks that were left out."""
    shown = set(data.columns.positions)
    gone = [tuple(at) not in shown for at in whole]
    share = float(total[:, gone].sum()) / float(total.sum()) if total.sum() else 0.0
    claim = "The share of rows that lay on start and end marks"
    return agree(claim, data.on_marks, share, 1e-5, "all columns put together again")


def check_replaced(
    lab: Lab, seen: Inspection, kind: KindName, off: Bool[ndarray, "layer head"], at_mean: Bool[ndarray, "layer head"]
) -> Iterator[Check]:
    """Checks which heads are marked as off or at their mean, head by head, and that nothing of these arrived."""
    zero, mean = (_heads_by_switch(seen, kind, by) for by in ("zero", "mean"))
    how = f"{zero.size} heads looked up in the switches"
    yield agree("The heads marked as off are those that switches turn off", off, zero, 0, how)
    yield agree("The heads marked as at their mean are those that switches set to it", at_mean, mean & ~zero, 0, how)
    if off.any() or at_mean.any():
        arrived = float(_reached(lab, seen, kind)[zero | mean].sum())
        yield Check(
            "Nothing of these heads reaches the output", arrived, 0.0, "their context recorded again; rows that do"
        )


def check_off(lab: Lab, seen: Inspection, kind: KindName, layer: int, heads: Sequence[int], data: MatrixData) -> Check:
    """Checks that a matrix is grey only where nothing of its heads reached the output, and a switch took it away."""
    taken = _heads_by_switch(seen, kind, "zero") | _heads_by_switch(seen, kind, "mean")
    reached = _reached(lab, seen, kind)[layer, list(heads)].any()
    how = "their context and the block's output recorded again"
    is_off = taken[layer, list(heads)].all() and not reached
    return agree("A grey matrix is of heads that do not reach the output", data.off, is_off, 0, how)


def _heads_by_switch(seen: Inspection, kind: KindName, by: str) -> Bool[ndarray, "layer head"]:
    """Returns the heads that switches set to zero, or to their mean, alone or with their whole block."""
    stack, sublayer = AttentionKind(kind).where
    found = np.zeros(seen.attention(kind).weights.shape[:2], dtype=bool)
    heads = heads_set_to(seen.interventions, (by,))  # type: ignore[arg-type]
    for layer, head in np.ndindex(found.shape):
        whole = any(
            (spec.replaced.tensor, spec.replaced.by) == ("output", by)
            for spec in seen.interventions
            if spec.replaced is not None and spec.address == Address(stack, layer, sublayer)
        )
        found[layer, head] = whole or (stack, layer, sublayer, head) in heads
    return found


def _reached(lab: Lab, seen: Inspection, kind: KindName) -> Bool[ndarray, "layer head query"]:
    """Returns which rows of heads reached the output of their block, in a decoding of its own."""
    if not isinstance(lab.model, Transformer):
        return one_head_reached(lab.model, seen.source_ids, seen.interventions, dict(seen.forced))
    return np.array([[row.reached for row in rows] for rows in recorded_rows(lab.model, seen, kind)]).swapaxes(1, 2)
