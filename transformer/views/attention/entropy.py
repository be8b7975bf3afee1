"""The entropy of attention: how widely each head spreads the weights of each query."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.aggregation import Unit, row_entropy
from transformer.analysis.attention.weight_checks import check_recorded
from transformer.analysis.checks import Check, agree
from transformer.figures.attention.matrix import AXIS_TITLES
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import KindName
from transformer.views.attention import matrix_checks
from transformer.views.attention.matrix_data import NOTHING_LEFT, MatrixData, Side, draw_matrix, sides, value_tables


@dataclass(frozen=True, kw_only=True)
class AttentionEntropy:
    """The entropy of each row of weights: rows are queries, columns all heads of all layers."""

    kind: KindName
    unit: Unit = "nats"
    marks: Literal["shown", "hidden"] = "shown"
    framed: tuple[int, int, int] | None = None
    """The query, layer and head with a frame around them."""

    threshold = 0.0
    quantity = "entropy"
    names = "query", "layer · head"
    columns_are_tokens = False
    name = "{kind}-entropy"

    @property
    def axes(self) -> dict[KindName, tuple[str, str]]:
        """Returns the titles of rows and columns."""
        return {self.kind: (AXIS_TITLES[self.kind][0], "layer · head")}

    def data(self, lab: Lab, seen: Inspection) -> MatrixData:
        """Computes −Σ w log w of each row; an entry leads to the row's largest weight."""
        attention = seen.attention(self.kind)
        entropies, bound = row_entropy(attention.weights, attention.mask, self.unit)
        n_layers, n_heads, n_rows = entropies.shape
        layer, head = np.divmod(np.arange(n_layers * n_heads), n_heads)
        row = np.broadcast_to(np.arange(n_rows)[:, None], (n_rows, len(layer)))
        strongest = attention.weights.argmax(axis=-1).reshape(-1, n_rows).T  # [layer head query] -> [query layer*head]
        at = (np.broadcast_to(layer, row.shape), np.broadcast_to(head, row.shape), row, strongest)
        rows, _ = sides(lab, seen, self.kind, words=False)
        kept = [not mark or self.marks == "shown" for mark in rows.special]
        if not any(kept):
            raise ValueError(NOTHING_LEFT)
        names = tuple(f"{a}·{b}" for a, b in zip(layer, head, strict=True))
        columns = Side(names, tuple((index,) for index in range(len(names))), (False,) * len(names))
        return MatrixData(
            values=entropies.reshape(-1, n_rows).T.astype(np.float32)[kept],
            rows=rows if all(kept) else rows.without_special(),
            columns=columns,
            entries=np.stack(at, axis=-1)[kept],
            largest=bound[layer].T.astype(np.float32)[kept],
        )

    def top(self, data: MatrixData) -> float:
        """Returns the value at the end of the colour scale: the most that any row could have."""
        assert data.largest is not None, "entropy has a bound"
        return float(data.largest.max(initial=0.0)) or 1.0

    def least(self, data: MatrixData) -> float:
        """Returns the smallest value that is drawn: all are."""
        return 0.0

    def chosen(self, data: MatrixData) -> tuple[int, int] | None:
        """Returns the row and column with a frame around them."""
        if self.framed is None or (row := data.rows.index_of(self.framed[0])) is None:
            return None
        return row, data.columns.labels.index(f"{self.framed[1]}·{self.framed[2]}")

    def figure(self, data: MatrixData, *, dark: bool = False) -> go.Figure:
        return draw_matrix(self, data, dark)

    def tables(self, data: MatrixData) -> tuple[DataFrame, ...]:
        return value_tables(self.quantity, data)

    def checks(self, lab: Lab, seen: Inspection, data: MatrixData) -> Iterator[Check]:
        """Computes the weights again and sums each row key by key."""
        yield from check_recorded(lab.model, seen, self.kind)
        attention, log = seen.attention(self.kind), math.log if self.unit == "nats" else math.log2
        weights, rows = attention.weights.astype(np.float64), [at[0] for at in data.rows.positions]
        heads = list(np.ndindex(weights.shape[:2]))

        def entropy(row: ndarray) -> float:
            return -math.fsum(w * log(w) for w in row.tolist() if w > 0) if row.any() else math.nan

        again = [[entropy(weights[at][row]) for at in heads] for row in rows]
        name = "ln" if self.unit == "nats" else "log₂"
        how = f"{len(rows) * len(heads):,} rows summed again, key by key"
        yield agree(f"Entropy is −Σ w {name} w of each row", data.values, again, 1e-5, how)
        bound = [[log(max(sum(attention.mask[layer, row].tolist()), 1)) for layer, _ in heads] for row in rows]
        how = "keys counted again"
        yield agree("No row's entropy exceeds the logarithm of its keys", data.largest, bound, 1e-5, how)
        yield matrix_checks.check_rows(lab, seen, self.kind, self.marks, data)
        shown = matrix_checks.flat(data.columns.positions, data.columns.special)
        one_each = matrix_checks.flat([[place] for place in range(len(heads))], [False for _ in heads])
        yield agree("Each column is a head", shown, one_each, 0, "layers and heads counted")
        largest = [[(*at, row, int(weights[at][row].argmax())) for at in heads] for row in rows]
        yield agree("Each entry leads to the largest weight of its row", data.entries, largest, 0, "keys compared")
        yield agree("Entropy is not drawn as off", data.off, False, 0, "weights are computed whatever follows")
