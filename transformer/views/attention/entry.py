"""One entry of a head's attention matrix taken apart: the products behind its score, its share of the output."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from pandas import DataFrame

from transformer.analysis.attention.entry import Entry
from transformer.analysis.attention.entry_checks import check_entry
from transformer.analysis.checks import Check
from transformer.figures.attention.entry import products_figure, shares_figure
from transformer.figures.tables import column_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.score_forms import SCORE_FORMS
from transformer.model.taps import Address


@dataclass(frozen=True)
class EntryData:
    """An entry, and the tokens at its row's keys."""

    entry: Entry
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _OneEntry:
    """The place of an entry, its data and its checks."""

    kind: KindName
    layer: int
    head: int
    query: int
    key: int

    def data(self, lab: Lab, seen: Inspection) -> EntryData:
        """The entry, recorded while the sentence is decoded again; ValueError for a key that did not exist yet."""
        entry = lab.explain_entry(seen, self.kind, self.layer, self.head, self.query, self.key)
        return EntryData(entry, seen.attention(self.kind).keys[: len(entry.weights)])

    def checks(self, lab: Lab, seen: Inspection, data: EntryData) -> Iterator[Check]:
        """Computes every term again from the inputs of the block."""
        stack, sublayer = AttentionKind(self.kind).where
        yield from check_entry(
            lab.model,
            seen.source_ids,
            seen.interventions,
            dict(seen.forced),
            address=Address(stack, self.layer, sublayer),
            query=self.query,
            entry=data.entry,
            shown=seen.attention(self.kind).weights[self.layer, self.head, self.query],
        )


@dataclass(frozen=True, kw_only=True)
class EntryProducts(_OneEntry):
    """q and k of one entry and the terms of their score, dimension by dimension."""

    name = "{kind}-layer{layer}-head{head}-entry{query}-{key}-products"
    explained = (
        "One query vector *q*, one key vector *k*, and in the third row what each dimension contributes to their "
        "score. Where the score is a dot product, these contributions add up to it: dimensions in which both numbers "
        "are large and have the same sign pull the two tokens together. Softmax over the row then turns the scores "
        "into weights."
    )

    def figure(self, data: EntryData, *, dark: bool = False) -> go.Figure:
        """Three rows of numbers."""
        entry = data.entry
        form = SCORE_FORMS[entry.score]
        return products_figure(
            entry.q,
            entry.k,
            entry.products,
            score=form.written,
            term=form.short_term,
            kind=self.kind,
            dark=dark,
        )

    def tables(self, data: EntryData) -> tuple[DataFrame, ...]:
        """q, k and the terms of their score."""
        q, k = data.entry.q.astype(np.float64), data.entry.k.astype(np.float64)
        columns = {"q": q, "k": k, "term": data.entry.products}
        return (column_table("products", [f"dimension {i}" for i in range(len(q))], columns),)


@dataclass(frozen=True, kw_only=True)
class EntryShares(_OneEntry):
    """The parts of the block's output, seen from one entry."""

    name = "{kind}-layer{layer}-head{head}-entry{query}-{key}-shares"

    def figure(self, data: EntryData, *, dark: bool = False) -> go.Figure:
        """A bar for each part."""
        parts = data.entry.parts
        return shares_figure(list(parts), list(parts.values()), kind=self.kind, dark=dark)

    def tables(self, data: EntryData) -> tuple[DataFrame, ...]:
        """The parts of the output, and the entry's whole row."""
        entry, parts = data.entry, data.entry.parts
        row = {
            "score": entry.scores,
            "allowed": entry.allowed,
            "exp(score - largest)": entry.numerators,
            "weight": entry.weights,
            "share": entry.shares[entry.head],
        }
        return (
            column_table("share", list(parts), {"of the output": np.array(list(parts.values()))}),
            column_table("row", numbered(data.keys), row),
        )
