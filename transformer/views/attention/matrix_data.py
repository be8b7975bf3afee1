"""The data of a matrix of attention; its rows and columns: the tokens of a pass, or the words that they make up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from numpy import ndarray

from transformer.analysis.attention.aggregation import group_tokens
from transformer.figures.labels import WORD_START
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import KindName
from transformer.text.tokenizer import BOS, EOS, PAD, UNK

MARKS = (PAD, BOS, EOS)


@dataclass(frozen=True)
class Side:
    """The tokens along one side of a matrix, each made of one or several of the pass's positions."""

    labels: tuple[str, ...]
    """Tokens as the model reads them."""
    typed: tuple[str, ...]
    """The same, but where the model never saw a word and reads <unk>, the word as it was typed."""
    positions: tuple[tuple[int, ...], ...]
    special: tuple[bool, ...]
    """True for start, end and padding marks."""

    def without_special(self) -> "Side":
        """Returns the side without its marks."""
        kept = [index for index, mark in enumerate(self.special) if not mark]
        labels, typed, positions = (tuple(part[i] for i in kept) for part in (self.labels, self.typed, self.positions))
        return Side(labels, typed, positions, (False,) * len(kept))  # type: ignore[arg-type]

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
    arrived: Float[ndarray, "query"] | None = None
    """The share of each position's paths back that end in a column of a rollout."""
    alive: Bool[ndarray, "query"] | None = None
    """True for positions of a rollout from which a path leads to an input."""

    def find(self, query: int, key: int) -> tuple[int, int] | None:
        """Returns the row and column that show this query and key; None where they are left out."""
        row, column = self.rows.index_of(query), self.columns.index_of(key)
        return None if row is None or column is None else (row, column)


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
    positions = tuple(
        tuple(i for i, number in enumerate(numbers) if number == shown) for shown in range(max(numbers, default=-1) + 1)
    )
    labels = tuple(_word(tokens, at) if words else tokens[at[0]] for at in positions)
    typed = tuple(
        unseen.get(at[0], label) if ids[at[0]] == UNK and len(at) == 1 else label
        for label, at in zip(labels, positions, strict=True)
    )
    return Side(labels, typed, positions, tuple(all(ids[i] in MARKS for i in at) for at in positions))


def _word(tokens: Sequence[str], at: Sequence[int]) -> str:
    """Joins the pieces, without the mark for "a word begins here"."""
    word = "".join(tokens[i] for i in at)
    return word.removeprefix(WORD_START) or word
