"""The data of a matrix of attention, drawn and as a table; its rows and columns are tokens of a pass, or words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.aggregation import Marks, group_tokens, leave_out, renormalise
from transformer.figures.export import matrix_figure
from transformer.figures.labels import WORD_START
from transformer.figures.tables import matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import KindName
from transformer.text.tokenizer import BOS, EOS, PAD, SPECIALS, UNK

MARKS = (PAD, BOS, EOS)
NOTHING_LEFT = "without the start and end marks nothing is left to draw"


@dataclass(frozen=True)
class Side:
    """The tokens along one side of a matrix, each made of one or several of the pass's positions."""

    labels: tuple[str, ...]
    """Tokens as the model reads them."""
    positions: tuple[tuple[int, ...], ...]
    special: tuple[bool, ...]
    """True for start, end and padding marks."""
    unseen: Mapping[int, str] = field(default_factory=dict)
    """The words that the model never saw, as they were typed, by the indices of their tokens on this side."""

    @property
    def typed(self) -> tuple[str, ...]:
        """The labels, but where the model never saw a word and reads <unk>, the word as it was typed."""
        return tuple(
            self.unseen.get(index, label) if label == SPECIALS[UNK] else label
            for index, label in enumerate(self.labels)
        )

    def without_special(self) -> "Side":
        """Returns the side without its marks."""
        kept = [index for index, mark in enumerate(self.special) if not mark]
        labels, positions = (tuple(part[i] for i in kept) for part in (self.labels, self.positions))
        unseen = {new: self.unseen[old] for new, old in enumerate(kept) if old in self.unseen}
        return Side(labels, positions, (False,) * len(kept), unseen)  # type: ignore[arg-type]

    def notes(self, name: str) -> tuple[str, ...]:
        """Returns the place of each token in the pass: "row 3", "rows 3 to 4"."""
        return tuple(f"{name} {at[0]}" if len(at) == 1 else f"{name}s {at[0]} to {at[-1]}" for at in self.positions)

    def index_of(self, position: int) -> int | None:
        """Returns the index at which a position of the pass is shown; None where it is left out."""
        return next((index for index, at in enumerate(self.positions) if position in at), None)


@dataclass(frozen=True)
class MatrixData:
    """One labelled matrix."""

    values: Float[ndarray, "row column"]
    rows: Side
    columns: Side
    mask: Bool[ndarray, "row column"] | None = None
    """False where nothing may be attended to; None: no entry is masked."""
    forbidden: Bool[ndarray, "row column"] | None = None
    """The entries that an intervention forbids; None where an entry is not one query and one key."""
    off: bool = False
    """True where every head in it is set to zero or to its mean, so that nothing of it goes any further."""
    entries: Int[ndarray, "row column 4"] | None = None
    """The layer, head, query and key that explain each value; None where no single entry does."""
    largest: Float[ndarray, "row column"] | None = None
    """The most that each value could be."""
    on_marks: float | None = None
    """The share, 0..1, of the other tokens' rows that lay on start and end marks, where these are left out."""
    arrived: Float[ndarray, " query"] | None = None
    """The share of each position's paths back that end in a column of a rollout."""
    alive: Bool[ndarray, " query"] | None = None
    """True for positions of a rollout from which a path leads to an input."""

    def find(self, query: int, key: int) -> tuple[int, int] | None:
        """Returns the row and column that show this query and key; None where they are left out."""
        row, column = self.rows.index_of(query), self.columns.index_of(key)
        return None if row is None or column is None else (row, column)


class DrawnMatrix(Protocol):
    """The part of a view of a matrix that its drawings need, as a figure and on a canvas."""

    @property
    def kind(self) -> KindName: ...

    @property
    def axes(self) -> Mapping[KindName, tuple[str, str]]: ...

    @property
    def quantity(self) -> str: ...

    @property
    def unit(self) -> str:
        """The unit of the quantity; empty where it has none."""
        ...

    @property
    def names(self) -> tuple[str, str]:
        """The names of a row and a column, such as "query" and "key"."""
        ...

    @property
    def columns_are_tokens(self) -> bool: ...

    def top(self, data: MatrixData) -> float: ...

    def least(self, data: MatrixData) -> float: ...

    def chosen(self, data: MatrixData) -> tuple[int, int] | None: ...


def draw_matrix(view: DrawnMatrix, data: MatrixData, dark: bool) -> go.Figure:
    """Draws the matrix, with a frame around the chosen entry."""
    return matrix_figure(
        data.values,
        data.rows.typed,
        data.columns.typed,
        kind=view.kind,
        titles=view.axes[view.kind],
        quantity=f"{view.quantity} in {view.unit}" if view.unit else view.quantity,
        top=view.top(data),
        mask=data.mask,
        forbidden=data.forbidden,
        least=view.least(data),
        off=data.off,
        chosen=view.chosen(data),
        dark=dark,
    )


def value_tables(quantity: str, data: MatrixData) -> tuple[DataFrame, ...]:
    """Returns the values of a matrix as its one table."""
    return (matrix_table(quantity, data.values, numbered(data.rows.typed), numbered(data.columns.typed)),)


def without_marks(made: MatrixData, marks: Marks) -> MatrixData:
    """Leaves out start and end marks unless they are shown; ValueError where nothing is left."""
    if marks == "shown":
        return made
    rows, columns = ~np.array(made.rows.special), ~np.array(made.columns.special)
    values, share = leave_out(made.values, made.rows.special, made.columns.special)
    if not values.size:
        raise ValueError(NOTHING_LEFT)

    def cut(part: ndarray | None) -> ndarray | None:
        return None if part is None else part[rows][:, columns]

    return replace(
        made,
        values=renormalise(values) if marks == "renormalised" else values,
        rows=made.rows.without_special(),
        columns=made.columns.without_special(),
        mask=cut(made.mask),
        forbidden=cut(made.forbidden),
        entries=cut(made.entries),
        on_marks=share,
    )


def sides(lab: Lab, seen: Inspection, kind: KindName, *, words: bool) -> tuple[Side, Side]:
    """Returns rows and columns of one kind of attention: tokens, or with `words` the pieces of a word together."""
    attention = seen.attention(kind)
    source = seen.sentence.words
    written = lab.tokenizer.word_of_output(seen.target_ids)
    queries, keys = ids_at_sides(lab, seen, kind)
    rows = {"encoder_self": source, "decoder_self": [-1, *written[:-1]], "cross": written}[kind]
    columns = rows if kind == "decoder_self" else source
    unseen = seen.sentence.unseen_tokens
    return (
        _side(attention.queries, queries, rows, words, unseen if kind == "encoder_self" else {}),
        _side(attention.keys, keys, columns, words, {} if kind == "decoder_self" else unseen),
    )


def ids_at_sides(lab: Lab, seen: Inspection, kind: KindName) -> tuple[Sequence[int], Sequence[int]]:
    """Returns the token ids of queries and of keys."""
    read = (lab.model.config.bos_id, *seen.target_ids[:-1])
    ids = {"encoder_self": (seen.source_ids, seen.source_ids), "decoder_self": (read, read)}
    return ids.get(kind, (seen.target_ids, seen.source_ids))


def groups(side: Side) -> tuple[int, ...]:
    """Returns the row or column that shows each position of the pass."""
    return tuple(index for index, at in enumerate(side.positions) for _ in at)


def _side(
    tokens: Sequence[str], ids: Sequence[int], owners: Sequence[int], words: bool, unseen: Mapping[int, str]
) -> Side:
    numbers = group_tokens(owners) if words else tuple(range(len(tokens)))
    positions = tuple(tuple(at) for _, at in groupby(range(len(numbers)), key=numbers.__getitem__))
    labels = tuple(_word(tokens, at) if words else tokens[at[0]] for at in positions)
    special = tuple(all(ids[i] in MARKS for i in at) for at in positions)
    return Side(labels, positions, special, {i: unseen[at[0]] for i, at in enumerate(positions) if at[0] in unseen})


def _word(tokens: Sequence[str], at: Sequence[int]) -> str:
    """Joins the pieces, without the mark for "a word begins here"."""
    word = "".join(tokens[i] for i in at)
    return word.removeprefix(WORD_START) or word
