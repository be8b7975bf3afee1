"""Rows and columns of a picture of attention: the tokens of a pass, or its words. No Streamlit here."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.analysis.attention.aggregation import group_tokens
from transformer.figures.labels import WORD_START
from transformer.lab import AttentionKind, Inspection, Lab
from transformer.text.tokenizer import BOS, EOS, PAD


@dataclass(frozen=True)
class Side:
    """The tokens along one side of a picture, each made of one or several of the pass's positions."""

    labels: tuple[str, ...]
    positions: tuple[tuple[int, ...], ...]
    special: tuple[bool, ...]
    """True for start, end and padding marks."""

    def without_special(self) -> "Side":
        """The same without its marks."""
        kept = [index for index, mark in enumerate(self.special) if not mark]
        return Side(tuple(self.labels[i] for i in kept), tuple(self.positions[i] for i in kept), (False,) * len(kept))

    def notes(self, name: str) -> tuple[str, ...]:
        """Where each token stands in the pass: "row 3", "rows 3 to 4"."""
        return tuple(f"{name} {at[0]}" if len(at) == 1 else f"{name}s {at[0]} to {at[-1]}" for at in self.positions)

    def index_of(self, position: int) -> int | None:
        """Where a position of the pass is shown."""
        return next((index for index, at in enumerate(self.positions) if position in at), None)


def sides(lab: Lab, inspection: Inspection, kind: AttentionKind, *, words: bool) -> tuple[Side, Side]:
    """Rows and columns of one kind of attention: a token each, or with `words` the pieces of a word together."""
    attention = inspection.attention(kind)
    source = [*lab.tokenizer.word_of_token(inspection.text), -1]
    written = lab.tokenizer.word_of_output(inspection.target_ids)
    read = [-1, *written[:-1]]
    marks = (PAD, BOS, EOS)
    source_marks = [token in marks for token in inspection.source_ids]
    written_marks = [token in marks for token in inspection.target_ids]
    read_marks = [True, *written_marks[:-1]]
    rows, columns = {
        "encoder_self": ((source, source_marks), (source, source_marks)),
        "decoder_self": ((read, read_marks), (read, read_marks)),
        "cross": ((written, written_marks), (source, source_marks)),
    }[kind]
    return _side(attention.queries, *rows, words), _side(attention.keys, *columns, words)


def groups(side: Side) -> tuple[int, ...]:
    """For each position of the pass, which row or column shows it."""
    return tuple(index for index, at in enumerate(side.positions) for _ in at)


def _side(tokens: Sequence[str], owners: Sequence[int], special: Sequence[bool], words: bool) -> Side:
    numbers = group_tokens(owners) if words else tuple(range(len(tokens)))
    positions = tuple(
        tuple(i for i, number in enumerate(numbers) if number == shown) for shown in range(max(numbers, default=-1) + 1)
    )
    return Side(
        tuple(_word(tokens, at) if words else tokens[at[0]] for at in positions),
        positions,
        tuple(all(special[i] for i in at) for at in positions),
    )


def _word(tokens: Sequence[str], at: Sequence[int]) -> str:
    """The pieces joined, without the mark for "a word begins here"."""
    word = "".join(tokens[i] for i in at)
    return word.removeprefix(WORD_START) or word
