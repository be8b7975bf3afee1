"""Matrices of attention between tokens: one head or several, and rollout; the same as lines between tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.aggregation import (
    Combination,
    Marks,
    below,
    combine_heads,
    merge_masks,
    merge_words,
    strongest_head,
)
from transformer.analysis.attention.matrix_checks import (
    check_combination,
    check_contributions,
    check_rollout,
    put_together,
)
from transformer.analysis.attention.rollout import arrives, cross_rollout, rollout, sees_later
from transformer.analysis.attention.silenced_heads import effective_weights, heads_replaced, residuals
from transformer.analysis.attention.vectors import record_vectors
from transformer.analysis.attention.weight_checks import check_recorded
from transformer.analysis.checks import Check, agree
from transformer.figures.attention.matrix import AXIS_TITLES
from transformer.figures.attention.token_lines import lines_figure
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.taps import Address
from transformer.views.attention import matrix_checks
from transformer.views.attention.entropy import AttentionEntropy
from transformer.views.attention.matrix_data import (
    MatrixData,
    Side,
    draw_matrix,
    groups,
    sides,
    value_tables,
    without_marks,
)
from transformer.views.view import name_of

ROLLOUT_TITLES: dict[KindName, tuple[str, str]] = {
    "encoder_self": ("position: source token", "input: source token"),
    "decoder_self": ("position: token the decoder reads", "input: earlier token"),
    "cross": ("position: token being written", "input: source token"),
}
"""The titles of rows and columns of a rollout."""
LATER_SEEN = (
    "here decoder positions see later ones, so each step changed all rows, and the rows of cross-attention come from "
    "different passes: they cannot be multiplied. Rollout is available for both kinds of self-attention"
)


@dataclass(frozen=True, kw_only=True)
class HeadMatrix:
    """The weights of one head, or of several combined; or the length of what each entry adds to the output."""

    kind: KindName
    layer: int
    heads: tuple[int, ...]
    how: Combination = "mean"
    """The mean of several heads, or the largest of their values in each cell."""
    shows: Literal["weights", "norms"] = "weights"
    words: bool = False
    marks: Marks = "shown"
    threshold: float = 0.0
    """Smaller values are not drawn; of norms, as a fraction of the largest."""
    framed: tuple[int, int] | None = None
    """The query and key with a frame around them."""

    unit = ""
    names = "query", "key"
    columns_are_tokens = True
    quantities = {"weights": "weight", "norms": "‖α v W_O‖"}  # noqa: RUF012 - no field
    axes = AXIS_TITLES
    ends = "keys", "queries"

    @property
    def quantity(self) -> str:
        return self.quantities[self.shows]

    @property
    def explained(self) -> str:
        """The meaning of rows, columns and cells."""
        if self.shows == "norms":
            return (
                "Each row is a token that asks, each column one that is asked. A cell is the length of what this entry "
                "adds to the output of the attention: its weight, times the column's value, times W_O."
            )
        return (
            "Each row is a token that asks, with its query; each column is a token that is asked, by its key. A cell "
            "is the weight between them, the share of the column's value in what the row gathers. A row adds up to 1."
        )

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        heads = "-".join(map(str, self.heads))
        which = f"head{heads}" if len(self.heads) == 1 else f"{self.how}-{heads}"
        return f"{self.kind}-{self.shows}-layer{self.layer}-{which}"

    @property
    def note(self) -> str:
        """The sentence that stands beside its files."""
        return _note(self.threshold)

    def data(self, lab: Lab, seen: Inspection) -> MatrixData:
        """Merges words in each head, then combines the heads, then leaves out marks."""
        attention, all_heads = seen.attention(self.kind), self.values_of_layer(lab, seen)
        rows, columns = sides(lab, seen, self.kind, words=self.words)
        merged, mask = all_heads, attention.mask[self.layer]
        if self.words:
            by = groups(rows), groups(columns)
            merged, mask = merge_words(all_heads, *by), merge_masks(mask, *by)
        strongest = strongest_head(merged, self.heads)
        replaced = heads_replaced(seen, self.kind, ("zero", "mean"))
        made = MatrixData(
            values=combine_heads(merged, self.heads, self.how),
            rows=rows,
            columns=columns,
            mask=mask,
            forbidden=None if self.words else _forbidden(seen, self.kind, self.layer, mask.shape),
            off=bool(replaced[self.layer, list(self.heads)].all()),
            entries=_entries(self.layer, all_heads, strongest, rows, columns),
        )
        return without_marks(made, self.marks)

    def values_of_layer(self, lab: Lab, seen: Inspection) -> Float[ndarray, "head query key"]:
        """Returns the weights of every head of the layer, or the lengths of contributions."""
        weights = seen.attention(self.kind).weights
        if self.shows == "norms":
            vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, *AttentionKind(self.kind).where)
            weights = vectors.contributions(weights)
        if not 0 <= self.layer < len(weights):
            raise ValueError(f"layer {self.layer} does not exist: there are layers 0 to {len(weights) - 1}")
        return weights[self.layer]

    def top(self, data: MatrixData) -> float:
        """Returns the value at the end of the colour scale: 1 for weights, which largest values can exceed."""
        largest = float(data.values.max(initial=0.0))
        return (largest or 1.0) if self.shows == "norms" else max(largest, 1.0)

    def least(self, data: MatrixData) -> float:
        """Returns the smallest value that is drawn."""
        return self.threshold * (self.top(data) if self.shows == "norms" else 1.0)

    def chosen(self, data: MatrixData) -> tuple[int, int] | None:
        """Returns the row and column with a frame around them."""
        return data.find(*self.framed) if self.framed else None

    def figure(self, data: MatrixData, *, dark: bool = False) -> go.Figure:
        return draw_matrix(self, data, dark)

    def tables(self, data: MatrixData) -> tuple[DataFrame, ...]:
        """Returns every value, also those that a threshold hides."""
        return value_tables(self.quantity, data)

    def checks(self, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
        """Computes the weights, or the vectors behind norms, again, and combines them again cell by cell."""
        yield from check_recorded(lab.model, seen, self.kind)
        values = self.values_of_layer(lab, seen)
        if self.shows == "norms":
            stack, sublayer = AttentionKind(self.kind).where
            address = Address(stack, self.layer, sublayer)
            yield from check_contributions(lab.model, seen.source_ids, seen.interventions, address, values)
        largest, rescaled = self.how == "max", self.marks == "renormalised"
        chosen, rows, columns = values[list(self.heads)], data.rows.positions, data.columns.positions
        yield check_combination(data.values, chosen, rows, columns, largest=largest, rescaled=rescaled)
        yield from matrix_checks.check_sides(lab, seen, self.kind, self.marks, data)
        yield from matrix_checks.check_masks(seen, self.kind, self.layer, data)
        yield matrix_checks.check_entries(self.layer, self.heads, values, data)
        yield matrix_checks.check_off(lab, seen, self.kind, self.layer, self.heads, data)
        if data.on_marks is not None:
            whole = sides(lab, seen, self.kind, words=self.words)[1].positions
            total = put_together(chosen, rows, whole, largest=largest, rescaled=False)
            yield matrix_checks.check_on_marks(data, total, whole)


@dataclass(frozen=True, kw_only=True)
class AttentionRollout:
    """Attention rollout from the input through a layer."""

    kind: KindName
    layer: int
    words: bool = False
    marks: Marks = "shown"
    threshold: float = 0.0

    quantity = "rollout"
    unit = ""
    names = "position", "input"
    columns_are_tokens = True
    axes = ROLLOUT_TITLES
    ends = "inputs", "positions"
    name = "{kind}-rollout-through-layer{layer}"

    @property
    def note(self) -> str:
        """The sentence that stands beside its files."""
        return _note(self.threshold)

    def data(self, lab: Lab, seen: Inspection) -> MatrixData:
        """Multiplies the layers, without what switches stop; ValueError where decoder positions see later ones."""
        kind, last, mask = self.kind, self.layer + 1, None
        built_with = lab.transformer.config.residual
        kept: dict[KindName, list[bool]] = {of: residuals(seen, of, built_with) for of in AttentionKind}
        weights: dict[KindName, ndarray] = {of: effective_weights(seen, of) for of in AttentionKind}
        if kind == "cross":
            if sees_later(seen.decoder_self.weights):
                raise ValueError(LATER_SEEN)
            encoder = rollout(weights["encoder_self"], kept["encoder_self"])[-1]
            both = cross_rollout(
                encoder, weights["decoder_self"], weights["cross"], kept["decoder_self"], kept["cross"]
            )
            values, own = both.source[self.layer], both.target[self.layer].sum(axis=-1)
        else:
            values, own = rollout(weights[kind], kept[kind])[self.layer], 0.0
            mask = arrives(seen.attention(kind).mask[:last], kept[kind][:last])
        arrived = values.sum(axis=-1)
        alive = arrived + own > 0
        values = values.astype(np.float32)
        rows, columns = sides(lab, seen, kind, words=self.words)
        if self.words:
            by = groups(rows), groups(columns)
            values, mask = merge_words(values, *by), None if mask is None else merge_masks(mask, *by)
        made = MatrixData(values=values, rows=rows, columns=columns, mask=mask, arrived=arrived, alive=alive)
        return without_marks(made, self.marks)

    def top(self, data: MatrixData) -> float:
        """Returns the value at the end of the colour scale."""
        return float(data.values.max(initial=0.0)) or 1.0

    def least(self, data: MatrixData) -> float:
        """Returns the smallest value that is drawn."""
        return self.threshold

    def chosen(self, data: MatrixData) -> None:
        """Frames no entry: none has a single q · k behind it."""

    def figure(self, data: MatrixData, *, dark: bool = False) -> go.Figure:
        return draw_matrix(self, data, dark)

    def tables(self, data: MatrixData) -> tuple[DataFrame, ...]:
        """Returns every value, also those that a threshold hides."""
        return value_tables(self.quantity, data)

    def checks(self, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
        """Follows every position back through the layers, one step at a time."""
        yield from check_recorded(lab.model, seen, self.kind)
        n_layers, rows, columns = self.layer + 1, data.rows.positions, data.columns.positions
        walked, alive, layers = matrix_checks.walked(lab, seen, self.kind, n_layers)
        again = put_together(walked[None], rows, columns, largest=False, rescaled=self.marks == "renormalised")
        yield check_rollout(data.values, again, layers)
        how = "paths of every position counted again"
        yield agree("The share of a position's paths that end here", data.arrived, walked.sum(axis=-1), 1e-5, how)
        yield agree("The positions from which any path leads", data.alive, alive, 0, how)
        yield matrix_checks.nothing_lost(lab, seen, self.kind, n_layers)
        yield from matrix_checks.check_sides(lab, seen, self.kind, self.marks, data)
        if data.mask is not None:
            yield matrix_checks.check_reach(lab, seen, self.kind, n_layers, data)
        yield agree("A rollout is not drawn as off", data.off, False, 0, "it counts heads that are off as zero")
        if data.on_marks is not None:
            whole = sides(lab, seen, self.kind, words=self.words)[1].positions
            total = put_together(walked[None], rows, whole, largest=False, rescaled=False)
            yield matrix_checks.check_on_marks(data, total, whole)


@dataclass(frozen=True, kw_only=True)
class TokenLines:
    """A matrix drawn as lines between two rows of tokens: columns above, rows below."""

    of: HeadMatrix | AttentionRollout
    labels: tuple[str, str] | None = None
    """The names of the upper and the lower tokens; None: those of the matrix."""

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        return f"{name_of(self.of)}-lines"

    @property
    def note(self) -> str:
        """The sentence that stands beside its files."""
        return self.of.note.replace("entries", "lines")

    @property
    def ends(self) -> tuple[str, str]:
        """The names of the upper and the lower tokens."""
        return self.labels or self.of.ends

    def data(self, lab: Lab, seen: Inspection) -> MatrixData:
        """Returns the data of the matrix."""
        return self.of.data(lab, seen)

    def figure(self, data: MatrixData, *, dark: bool = False) -> go.Figure:
        """Draws each line as dark as its value."""
        return lines_figure(
            data.columns.typed,
            data.rows.typed,
            data.values,
            kind=self.of.kind,
            labels=self.ends,
            top=self.of.top(data),
            least=self.of.least(data),
            off=data.off,
            dark=dark,
        )

    def tables(self, data: MatrixData) -> tuple[DataFrame, ...]:
        """Returns every value, also those that a threshold hides."""
        return self.of.tables(data)

    def checks(self, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
        yield from self.of.checks(lab, seen, data)


Matrix = HeadMatrix | AttentionRollout | AttentionEntropy


def hidden_share(view: HeadMatrix | AttentionRollout, data: MatrixData) -> tuple[Bool[ndarray, "row column"], float]:
    """Returns which values a threshold hides, and their share, 0..1, of all there is."""
    return below(data.values, view.least(data))


def _note(threshold: float) -> str:
    return "a threshold hides entries only; all numbers are here" if threshold else ""


def _forbidden(seen: Inspection, kind: KindName, layer: int, shape: Sequence[int]) -> Bool[ndarray, "query key"]:
    """Returns the entries of a layer that interventions forbid."""
    found = np.zeros(shape, dtype=bool)
    for spec in seen.interventions:
        if not spec.forbidden or not spec.acts_in(*AttentionKind(kind).where):
            continue
        assert spec.address is not None, "it acts in a block"
        if spec.address.layer == layer:
            inside = [at for at in spec.forbidden if at[0] < shape[0] and at[1] < shape[1]]
            found[tuple(zip(*inside, strict=True))] = True
    return found


def _entries(
    layer: int,
    values: Float[ndarray, "head query key"],
    strongest: Int[ndarray, "row column"],
    rows: Side,
    columns: Side,
) -> Int[ndarray, "row column 4"]:
    """Returns the strongest head of each cell, and its query and key with the largest value in the cell."""
    queries, keys = (np.array([at[0] for at in side.positions]) for side in (rows, columns))
    found = np.stack(np.broadcast_arrays(layer, strongest, queries[:, None], keys), axis=-1)
    if len(rows.positions) == values.shape[1] and len(columns.positions) == values.shape[2]:
        return found  # no cell is of several entries
    for row, column in np.ndindex(strongest.shape):
        head, from_, to = strongest[row, column], rows.positions[row], columns.positions[column]
        part = values[head][np.ix_(from_, to)]
        query, key = np.unravel_index(int(part.argmax()), part.shape)
        found[row, column, 2:] = from_[query], to[key]
    return found
